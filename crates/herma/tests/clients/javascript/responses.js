// Responses.

import { GREETING, all, atOnce, byOpenAI, responsesUsage, same, test } from './kit.js';

const client = byOpenAI();

const WEATHER = {
  type: 'function',
  name: 'weather',
  description: 'The weather in a city.',
  parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  strict: false,
};
const QUESTION = { role: 'user', content: 'Is it warmer in Oslo or in Rome?' };

function nextTurn(response) {
  const calls = response.output.filter((item) => item.type === 'function_call');
  const cityOf = (call) => JSON.parse(call.arguments).city;
  same(calls.map((call) => call.name), ['weather', 'weather']);
  same(calls.map(cityOf), ['Oslo', 'Rome']);
  same(new Set(calls.map((call) => call.call_id)).size, 2);
  const spoken = response.output.flatMap((item) => {
    if (item.type === 'message') return [{ role: 'assistant', content: item.content[0].text }];
    const { type, call_id, name } = item;
    return type === 'function_call' ? [{ type, call_id, name, arguments: item.arguments }] : [];
  });
  const degrees = { Oslo: '4', Rome: '21' };
  const results = calls.map((call) => ({
    type: 'function_call_output',
    call_id: call.call_id,
    output: degrees[cityOf(call)],
  }));
  return [QUESTION, ...spoken, ...results];
}

test('responses plain', async (used) => {
  const { data, response } = await client.responses.create({ model: 'talk', input: 'Hi.' }).withResponse();
  same(response.headers.get('x-herma-upstream'), 'talk/talk');
  same(data.output_text, GREETING);
  same(data.status, 'completed');
  used.push(responsesUsage(data.usage));
});

test('responses stream', async (used) => {
  const events = await all(await client.responses.create({ model: 'talk', input: 'Hi.', stream: true }));
  const deltas = events.filter((event) => event.type === 'response.output_text.delta');
  same(events[0].type, 'response.created');
  same(deltas.map((event) => event.delta).join(''), GREETING);
  same(events.map((event) => event.sequence_number), [...events.keys()]);
  same(events.at(-1).type, 'response.completed');
  used.push(responsesUsage(events.at(-1).response.usage));
});

test('responses stream by the helper', async (used) => {
  const response = await client.responses.stream({ model: 'talk', input: 'Hi.' }).finalResponse();
  same(response.output_text, GREETING);
  used.push(responsesUsage(response.usage));
});

test('responses tools', async (used) => {
  const options = { model: 'tools', tools: [WEATHER] };
  const first = await client.responses.create({ ...options, input: [QUESTION] });
  used.push(responsesUsage(first.usage));
  const second = await client.responses.create({ ...options, input: nextTurn(first) });
  same(second.output_text, 'Rome is warmer than Oslo.');
  used.push(responsesUsage(second.usage));
});

test('responses tools streamed', async (used) => {
  const options = { model: 'tools', tools: [WEATHER] };
  const first = await client.responses.stream({ ...options, input: [QUESTION] }).finalResponse();
  used.push(responsesUsage(first.usage));
  const second = await client.responses.stream({ ...options, input: nextTurn(first) }).finalResponse();
  same(second.output_text, 'Rome is warmer than Oslo.');
  used.push(responsesUsage(second.usage));
});

test('responses many at once', async (used) => {
  const ask = () => client.responses.create({ model: 'talk', input: 'Hi.' });
  for (const response of await atOnce(8, ask)) {
    same(response.output_text, GREETING);
    used.push(responsesUsage(response.usage));
  }
});
