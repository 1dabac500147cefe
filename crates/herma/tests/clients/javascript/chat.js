// Chat Completions.

import { GREETING, all, atOnce, byOpenAI, chatUsage, said, same, test } from './kit.js';

const client = byOpenAI();

const WEATHER = {
  type: 'function',
  function: {
    name: 'weather',
    description: 'The weather in a city.',
    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  },
};
const QUESTION = { role: 'user', content: 'Is it warmer in Oslo or in Rome?' };
const PIXEL =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

const cityOf = (call) => JSON.parse(call.function.arguments).city;
const textOf = (chunks) => chunks.map((chunk) => chunk.choices[0]?.delta.content ?? '').join('');

function nextTurn(completion) {
  const { message, finish_reason } = completion.choices[0];
  const calls = message.tool_calls;
  same(finish_reason, 'tool_calls');
  same(calls.map((call) => call.function.name), ['weather', 'weather']);
  same(calls.map(cityOf), ['Oslo', 'Rome']);
  same(new Set(calls.map((call) => call.id)).size, 2);
  const degrees = { Oslo: '4', Rome: '21' };
  const results = calls.map((call) => ({ role: 'tool', tool_call_id: call.id, content: degrees[cityOf(call)] }));
  return [QUESTION, message, ...results];
}

test('chat plain', async (used) => {
  const call = client.chat.completions.create({ model: 'talk', messages: said('Hi.') });
  const { data, response } = await call.withResponse();
  same(response.headers.get('x-herma-upstream'), 'talk/talk');
  same(data.model, 'talk');
  same(data.choices[0].message.content, GREETING);
  same(data.choices[0].finish_reason, 'stop');
  used.push(chatUsage(data.usage));
});

test('chat by an alias', async (used) => {
  const completion = await client.chat.completions.create({ model: 'small-talk', messages: said('Hi.') });
  same(completion.choices[0].message.content, GREETING);
  used.push(chatUsage(completion.usage));
});

test('chat with an image inside', async (used) => {
  const parts = [
    { type: 'text', text: 'What is it?' },
    { type: 'image_url', image_url: { url: PIXEL } },
  ];
  const completion = await client.chat.completions.create({ model: 'talk', messages: said(parts) });
  same(completion.choices[0].message.content, GREETING);
  used.push(chatUsage(completion.usage));
});

test('chat stream', async (used) => {
  const options = { model: 'talk', messages: said('Hi.'), stream: true };
  const chunks = await all(await client.chat.completions.create(options));
  same(textOf(chunks), GREETING);
  same(chunks.at(-1).choices[0].finish_reason, 'stop');
  // It did not ask for the usage, and sees none.
  same(chunks.filter((chunk) => chunk.usage), []);
  used.push(null);
});

test('chat stream with usage', async (used) => {
  const options = { model: 'talk', messages: said('Hi.'), stream: true, stream_options: { include_usage: true } };
  const chunks = await all(await client.chat.completions.create(options));
  same(textOf(chunks), GREETING);
  same(chunks.at(-1).choices, []);
  used.push(chatUsage(chunks.at(-1).usage));
});

test('chat stream by the helper', async (used) => {
  const options = { model: 'talk', messages: said('Hi.'), stream_options: { include_usage: true } };
  const completion = await client.chat.completions.stream(options).finalChatCompletion();
  same(completion.choices[0].message.content, GREETING);
  used.push(chatUsage(completion.usage));
});

test('chat tools', async (used) => {
  const options = { model: 'tools', tools: [WEATHER] };
  const first = await client.chat.completions.create({ ...options, messages: [QUESTION] });
  used.push(chatUsage(first.usage));
  const second = await client.chat.completions.create({ ...options, messages: nextTurn(first) });
  same(second.choices[0].message.content, 'Rome is warmer than Oslo.');
  used.push(chatUsage(second.usage));
});

test('chat tools streamed', async (used) => {
  const options = { model: 'tools', tools: [WEATHER], stream_options: { include_usage: true } };
  const first = await client.chat.completions.stream({ ...options, messages: [QUESTION] }).finalChatCompletion();
  used.push(chatUsage(first.usage));
  const second = await client.chat.completions.stream({ ...options, messages: nextTurn(first) }).finalChatCompletion();
  same(second.choices[0].message.content, 'Rome is warmer than Oslo.');
  used.push(chatUsage(second.usage));
});

test('chat many at once', async (used) => {
  const ask = () => client.chat.completions.create({ model: 'talk', messages: said('Hi.') });
  for (const completion of await atOnce(8, ask)) {
    same(completion.choices[0].message.content, GREETING);
    used.push(chatUsage(completion.usage));
  }
});

test('chat streams at once', async (used) => {
  const options = { model: 'talk', messages: said('Hi.'), stream: true, stream_options: { include_usage: true } };
  const ask = async () => all(await client.chat.completions.create(options));
  for (const chunks of await atOnce(8, ask)) {
    same(textOf(chunks), GREETING);
    used.push(chatUsage(chunks.at(-1).usage));
  }
});
