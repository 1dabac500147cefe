"""The cases with the official Python libraries."""

import kit

# The order of the table.
import chat
import responses
import messages
import others
import refusals
import retries
import endings

kit.run()
