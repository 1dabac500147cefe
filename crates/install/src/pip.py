"""Fetches packages of Python into a tree, and compiles all that is there, as nobody can write there later.

Called as: python3 -I -c THIS TREE, and then what pip is told. Nothing of what is fetched is run or imported.
"""

import compileall
import os
import py_compile
import runpy
import shutil
import sys

tree = sys.argv[1]
sys.argv = ["pip", *sys.argv[2:]]
try:
    runpy.run_module("pip", run_name="__main__", alter_sys=True)
    ended = 0
except SystemExit as end:
    ended = end.code
if ended:
    sys.exit(ended)
# Nothing starts these: they name the interpreter that pip was run with.
shutil.rmtree(os.path.join(tree, "site", "bin"), ignore_errors=True)
compileall.compile_dir(
    tree,
    maxlevels=32,
    quiet=2,
    # By content and not by time: the same files are the same tree.
    invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
)
