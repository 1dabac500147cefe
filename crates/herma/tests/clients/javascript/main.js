// The cases with the official JavaScript libraries.

import { run } from './kit.js';

// The order of the table.
import './chat.js';
import './responses.js';
import './messages.js';
import './others.js';
import './refusals.js';
import './retries.js';
import './endings.js';

await run();
