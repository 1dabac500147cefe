// Messages.

import assert from 'node:assert/strict';

import Anthropic from '@anthropic-ai/sdk';

import { GREETING, THOUGHT, URL, all, atOnce, byAnthropic, messagesUsage, said, same, test } from './kit.js';

const client = byAnthropic();

const HI = { model: 'talk', max_tokens: 500, messages: said('Hi.') };
const TOOLS = {
  model: 'tools',
  max_tokens: 500,
  tools: [
    {
      name: 'weather',
      description: 'The weather in a city.',
      input_schema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
    },
  ],
};
const QUESTION = { role: 'user', content: 'Is it warmer in Oslo or in Rome?' };

const textOf = (message) => message.content.map((block) => (block.type === 'text' ? block.text : '')).join('');

function nextTurn(message) {
  const calls = message.content.filter((block) => block.type === 'tool_use');
  same(message.stop_reason, 'tool_use');
  same(calls.map((call) => call.name), ['weather', 'weather']);
  same(calls.map((call) => call.input), [{ city: 'Oslo' }, { city: 'Rome' }]);
  same(new Set(calls.map((call) => call.id)).size, 2);
  const degrees = { Oslo: '4', Rome: '21' };
  const results = calls.map((call) => ({
    type: 'tool_result',
    tool_use_id: call.id,
    content: degrees[call.input.city],
  }));
  return [QUESTION, { role: 'assistant', content: message.content }, { role: 'user', content: results }];
}

test('messages plain', async (used) => {
  const { data, response } = await client.messages.create(HI).withResponse();
  same(response.headers.get('x-herma-upstream'), 'talk/talk');
  same(data.content.map((block) => block.type), ['thinking', 'text']);
  same(data.content[0].thinking, THOUGHT);
  same(textOf(data), GREETING);
  same(data.stop_reason, 'end_turn');
  used.push(messagesUsage(data.usage));
});

test('messages by a bearer token', async (used) => {
  const client = new Anthropic({ baseURL: URL, authToken: process.env.MAIN_TOKEN });
  const message = await client.messages.create(HI);
  same(textOf(message), GREETING);
  used.push(messagesUsage(message.usage));
});

test('messages beta', async (used) => {
  const message = await client.beta.messages.create({ ...HI, betas: ['some-beta-2026-01-01'] });
  same(textOf(message), GREETING);
  used.push(messagesUsage(message.usage));
});

test('messages stream', async (used) => {
  const events = await all(await client.messages.create({ ...HI, stream: true }));
  const deltas = events.filter((event) => event.type === 'content_block_delta').map((event) => event.delta);
  same(events[0].type, 'message_start');
  same(deltas.map((delta) => delta.text ?? '').join(''), GREETING);
  same(deltas.map((delta) => delta.thinking ?? '').join(''), THOUGHT);
  same(events.at(-1).type, 'message_stop');
  const output = events.find((event) => event.type === 'message_delta').usage.output_tokens;
  used.push({ ...messagesUsage(events[0].message.usage), output });
});

test('messages stream by the helper', async (used) => {
  const message = await client.messages.stream(HI).finalMessage();
  same(textOf(message), GREETING);
  used.push(messagesUsage(message.usage));
});

test('messages tools', async (used) => {
  const first = await client.messages.create({ ...TOOLS, messages: [QUESTION] });
  used.push(messagesUsage(first.usage));
  const second = await client.messages.create({ ...TOOLS, messages: nextTurn(first) });
  same(textOf(second), 'Rome is warmer than Oslo.');
  used.push(messagesUsage(second.usage));
});

test('messages tools streamed', async (used) => {
  const first = await client.messages.stream({ ...TOOLS, messages: [QUESTION] }).finalMessage();
  used.push(messagesUsage(first.usage));
  const second = await client.messages.stream({ ...TOOLS, messages: nextTurn(first) }).finalMessage();
  same(textOf(second), 'Rome is warmer than Oslo.');
  used.push(messagesUsage(second.usage));
});

test('messages many at once', async (used) => {
  for (const message of await atOnce(8, () => client.messages.create(HI))) {
    same(textOf(message), GREETING);
    used.push(messagesUsage(message.usage));
  }
});

test('messages streams at once', async (used) => {
  for (const message of await atOnce(8, () => client.messages.stream(HI).finalMessage())) {
    same(textOf(message), GREETING);
    used.push(messagesUsage(message.usage));
  }
});

test('count tokens', async () => {
  const short = await client.messages.countTokens({ model: 'talk', messages: said('Hi.') });
  const long = await client.messages.countTokens({ model: 'talk', messages: said('Hi there. '.repeat(100)) });
  assert.ok(0 < short.input_tokens && short.input_tokens < long.input_tokens);
});
