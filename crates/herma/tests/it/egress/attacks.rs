//! An agent that turns on its proxy: the run ends within its limits, and its bundle holds.

use herma_core::egress::EgressUse;
use herma_core::{Blocker, EventType};

use super::{decisions, used};
use crate::kit::{Finished, Herma, fix_and};

/// Plays the fix and then this Python program, which finds the proxy by its variable.
fn attack(herma: &Herma, program: &str, terms: &[(&str, &str)], mode: &str) -> Finished {
    let head = "import os, socket, time\nhost, port = os.environ['HTTPS_PROXY'].rsplit('/', 1)[1].split(':')\n\
                def ask(head):\n    s = socket.create_connection((host, int(port)))\n    s.sendall(head)\n    return s\n";
    let program = format!("{head}{program}");
    let indented: String = program.lines().flat_map(|line| ["        ", line, "\n"]).collect();
    let script = format!(
        "{}  - write:\n      path: slug.py\n      text: |\n{indented}  - shell: {{ command: python3 slug.py, must: true }}\n  \
         - delete: slug.py\n",
        fix_and(&[])
    );
    let (contract, script) = (herma.contract(terms), herma.script(&script));
    let args = ["run".as_ref(), contract.as_os_str(), "--json".as_ref(), "--egress".as_ref(), mode.as_ref()];
    herma.finished(&[&args[..], &["--script".as_ref(), script.as_os_str()]].concat())
}

#[test]
fn nothing_private_is_reached_even_where_every_host_may_be() {
    let herma = Herma::new();
    let program = "
for to in ['127.0.0.1:22', '10.0.0.1:443', '169.254.169.254:80', '192.168.1.1:443', '100.64.0.1:443', '[::1]:443',
           '[::ffff:127.0.0.1]:443', '[fd00::1]:443', '[fe80::1]:443', '[64:ff9b::7f00:1]:443', '0.0.0.0:443']:
    answer = ask(f'CONNECT {to} HTTP/1.1\\r\\nHost: {to}\\r\\n\\r\\n'.encode()).recv(4096)
    assert answer.startswith(b'HTTP/1.1 403 '), (to, answer)
    assert b'private_address' in answer, (to, answer)
for odd in ['127.1:443', '0x7f000001:443', '2130706433:443', 'localhost:443']:
    answer = ask(f'CONNECT {odd} HTTP/1.1\\r\\nHost: {odd}\\r\\n\\r\\n'.encode()).recv(4096)
    assert answer.startswith(b'HTTP/1.1 4'), (odd, answer)
answer = ask(b'GET http://169.254.169.254/latest HTTP/1.1\\r\\nHost: 169.254.169.254\\r\\n\\r\\n').recv(4096)
assert answer.startswith(b'HTTP/1.1 403 '), answer
";
    let run = attack(&herma, program, &[], "learn");
    run.assert_pass();
    let used = used(&run);
    assert_eq!((used.allowed, used.all_denied(), used.bytes_out, used.bytes_in), (0, 16, 0, 0), "{used:?}");
    assert_eq!(used.denied.get("private_address"), Some(&12), "{used:?}");
    let learned = herma.json(&["egress", "learned", "--json"]);
    assert_eq!(learned["proposals"], serde_json::json!([]), "{learned:#}");
}

#[test]
fn a_flood_is_counted_to_its_end_and_fills_no_disk() {
    let herma = Herma::new();
    let program = "
for _ in range(1500):
    ask(b'CONNECT example.org:443 HTTP/1.1\\r\\nHost: example.org:443\\r\\n\\r\\n').recv(64)
ask(b'CONNECT example.net:443 HTTP/1.1\\r\\nHost: example.net:443\\r\\n\\r\\n').recv(64)
";
    let run = attack(&herma, program, &[], "strict");
    run.assert_pass();
    let EgressUse { denied, without_an_event, .. } = used(&run);
    assert_eq!(denied.get("not_listed"), Some(&1501), "{denied:?}");
    let recorded = decisions(&run.bundle);
    assert_eq!((recorded.len(), without_an_event), (1001, 500));
    // The first denial of another host is there, after all those.
    assert_eq!(recorded.last().unwrap().0, "example.net");
}

#[test]
fn killing_every_process_inside_does_not_bypass_the_proxy() {
    let herma = Herma::new();
    let program = "
for pid in [int(p) for p in os.listdir('/proc') if p.isdigit()]:
    words = open(f'/proc/{pid}/cmdline', 'rb').read().split(b'\\0')
    assert b'__forward' not in words, words
answer = ask(b'CONNECT example.org:443 HTTP/1.1\\r\\nHost: example.org:443\\r\\n\\r\\n').recv(64)
assert answer.startswith(b'HTTP/1.1 403 '), answer
";
    let run = attack(&herma, program, &[], "strict");
    run.assert_pass();
    assert_eq!(used(&run).allowed, 0);
}

#[test]
fn connections_that_are_held_open_end_with_the_engine() {
    let herma = Herma::new();
    let hold = "- daemon: \"python3 -c 'import os, socket, time; p = int(os.environ[\\\"HTTPS_PROXY\\\"].rsplit(\\\":\\\")[-1]); \
                s = [socket.create_connection((\\\"127.0.0.1\\\", p)) for _ in range(200)]; \
                [c.sendall(b\\\"CONNECT exa\\\") for c in s]; open(\\\"/tmp/held\\\", \\\"w\\\"); time.sleep(600)'\"";
    let wait = "- shell: { command: \"while [ ! -e /tmp/held ]; do sleep 0.05; done\", must: true }";
    let run = herma.play(&fix_and(&[hold, wait]), &[("limits", "{ total: 2m }")]);
    run.assert_pass();
    assert_eq!(used(&run).allowed, 0);
}

#[test]
fn a_host_that_looks_like_a_secret_is_redacted_and_the_bundle_verifies() {
    let herma = Herma::new();
    let program = "
to = 'gh' + 'p_' + 'aZ3' * 12 + '.example.org:443'
answer = ask(f'CONNECT {to} HTTP/1.1\\r\\nHost: {to}\\r\\n\\r\\n'.encode()).recv(4096)
assert answer.startswith(b'HTTP/1.1 4'), answer
";
    let run = attack(&herma, program, &[], "strict");
    run.assert_pass();
    assert_eq!(used(&run).all_denied(), 1);
    assert_eq!(decisions(&run.bundle).len(), 1);
    assert!(!run.bundle.text("events.jsonl").contains(&"aZ3".repeat(12)));
}

#[test]
fn a_herma_that_is_killed_leaves_the_decisions_it_had_recorded() {
    let herma = Herma::new();
    let (contract, script) =
        (herma.contract(&[]), herma.script(&fix_and(&["- connect: { to: \"example.org:443\" }"])));
    let args = ["run".as_ref(), contract.as_os_str(), "--script".as_ref(), script.as_os_str()];
    let ended = herma.run_with_fault("kill:collect", &args);
    assert!(ended.was_killed(), "{ended:#?}");
    assert_eq!(herma.run(&["runs"]).code, Some(0));
    let [run] = herma.runs()[..] else { panic!("{:?}", herma.runs()) };
    let bundle = herma.bundle(run);
    bundle.assert_whole();
    herma.assert_verifies(&bundle);
    let report = bundle.report();
    assert_eq!(report.blockers[0].blocker, Blocker::Interrupted);
    assert!(bundle.has_event(EventType::EgressDecided));
    assert_eq!(report.egress.unwrap().all_denied(), 1);
}

#[test]
fn a_run_whose_decisions_are_lost_is_no_pass() {
    let herma = Herma::new();
    let (contract, script) =
        (herma.contract(&[]), herma.script(&fix_and(&["- connect: { to: \"example.org:443\" }"])));
    let args = ["run".as_ref(), contract.as_os_str(), "--script".as_ref(), script.as_os_str()];
    let ended = herma.run_with_fault("drop-event:egress.decided", &args);
    assert_eq!(ended.code, Some(1), "{ended:#?}");
    let [run] = herma.runs()[..] else { panic!("{:?}", herma.runs()) };
    let bundle = herma.bundle(run);
    herma.assert_verifies(&bundle);
    assert_eq!(bundle.report().blockers[0].blocker, Blocker::ArtifactWriteFailure);
}
