// Calls that do not end well: too slow, left, cut, and an error in the middle.

import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';

import { all, byAnthropic, byOpenAI, has, said, same, test, thrown } from './kit.js';

// Nothing is tried again here, but where a case says so.
const openai = byOpenAI('MAIN', { maxRetries: 0 });
const anthropic = byAnthropic('MAIN', { maxRetries: 0 });
const SHORT = { timeout: 400 };

const chat = (client, model, options, request) => () =>
  client.chat.completions.create({ model, messages: said('Hi.'), ...options }, request);
const responses = (client, model, options, request) => () =>
  client.responses.create({ model, input: 'Hi.', ...options }, request);
const messages = (client, model, options, request) => () =>
  client.messages.create({ model, max_tokens: 500, messages: said('Hi.'), ...options }, request);

const STREAM = { stream: true };
const read = (call) => async () => all(await call());

test('too slow', async () => {
  await thrown(OpenAI.APIConnectionTimeoutError, chat(openai, 'slow', {}, SHORT));
  await thrown(OpenAI.APIConnectionTimeoutError, responses(openai, 'slow', STREAM, SHORT));
  await thrown(Anthropic.APIConnectionTimeoutError, messages(anthropic, 'slow', {}, SHORT));
});

test('too slow, tried again', async () => {
  const again = { ...SHORT, maxRetries: 1 };
  await thrown(OpenAI.APIConnectionTimeoutError, chat(openai, 'slow', {}, again));
  await thrown(Anthropic.APIConnectionTimeoutError, messages(anthropic, 'slow', {}, again));
});

test('left in the middle', async () => {
  const calls = [chat(openai, 'endless', STREAM), responses(openai, 'endless', STREAM), messages(anthropic, 'endless', STREAM)];
  for (const call of calls) {
    let seen = 0;
    for await (const _ of await call()) {
      seen += 1;
      if (seen === 5) break;
    }
    same(seen, 5);
  }
});

test('cut streams', async () => {
  let error = await thrown(OpenAI.APIError, read(chat(openai, 'cut', STREAM)));
  same(error.code, 'upstream_cut');
  has(error.message, 'the connection to the upstream broke off in the middle of the answer');

  // The same event as for Python, which this library throws.
  error = await thrown(OpenAI.APIError, read(responses(openai, 'cut', STREAM)));
  has(error.message, 'the connection to the upstream broke off in the middle of the answer');

  error = await thrown(Anthropic.APIError, read(messages(anthropic, 'cut', STREAM)));
  same(error.error.error.type, 'api_error');
  has(error.error.error.message, 'the connection to the upstream broke off in the middle of the answer');
});

test('cut answers', async () => {
  await thrown(OpenAI.APIConnectionError, chat(openai, 'cut'));
  await thrown(OpenAI.APIConnectionError, responses(openai, 'cut'));
  await thrown(Anthropic.APIConnectionError, messages(anthropic, 'cut'));
});

test('errors in the middle', async () => {
  let error = await thrown(OpenAI.APIError, read(chat(openai, 'late', STREAM)));
  has(error.message, 'Overloaded in the middle.');
  const failed = (await read(responses(openai, 'late', STREAM))()).at(-1);
  same([failed.type, failed.response.error.message], ['response.failed', 'Overloaded in the middle.']);
  error = await thrown(Anthropic.APIError, read(messages(anthropic, 'late', STREAM)));
  same(error.error.error, { type: 'overloaded_error', message: 'Overloaded in the middle.' });
});
