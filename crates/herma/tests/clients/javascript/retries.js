// Upstreams that fail for a while. The libraries try again by themselves, twice unless told otherwise.

import { setTimeout as sleep } from 'node:timers/promises';

import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';

import { GREETING, byAnthropic, byOpenAI, chatUsage, messagesUsage, responsesUsage, said, same, test, thrown } from './kit.js';

const openai = byOpenAI();
const anthropic = byAnthropic();
const openaiOnce = byOpenAI('MAIN', { maxRetries: 0 });
const anthropicOnce = byAnthropic('MAIN', { maxRetries: 0 });

async function chat(client, model, text, used) {
  const completion = await client.chat.completions.create({ model, messages: said(text) });
  used.push(chatUsage(completion.usage));
  return completion.choices[0].message.content;
}

async function responses(client, model, input, used) {
  const response = await client.responses.create({ model, input });
  used.push(responsesUsage(response.usage));
  return response.output_text;
}

async function messages(client, model, text, used) {
  const message = await client.messages.create({ model, max_tokens: 500, messages: said(text) });
  used.push(messagesUsage(message.usage));
  return message.content[0].text;
}

test('busy twice, chat', async (used) => {
  same(await chat(openai, 'busy', 'Chat.', used), 'Now I have time.');
});

test('busy twice, responses', async (used) => {
  same(await responses(openai, 'busy', 'Responses.', used), 'Now I have time.');
});

test('busy twice, messages', async (used) => {
  same(await messages(anthropic, 'busy', 'Messages.', used), 'Now I have time.');
});

test('busy twice, streamed', async (used) => {
  const options = { model: 'busy', max_tokens: 500, messages: said('Streamed.') };
  const message = await anthropic.messages.stream(options).finalMessage();
  same(message.content[0].text, 'Now I have time.');
  used.push(messagesUsage(message.usage));
});

test('busy, and not tried again', async (used) => {
  const error = await thrown(OpenAI.RateLimitError, () => chat(openaiOnce, 'busy', 'Once.', used));
  same([error.status, error.headers.get('retry-after-ms')], [429, '200']);
  same(error.error.message, 'Too many requests.');
  await sleep(500);
  same(await chat(openai, 'busy', 'Once.', used), 'Now I have time.');
});

test('overloaded once', async (used) => {
  same(await chat(openai, 'overloaded', 'Chat.', used), 'It got better.');
  same(await messages(anthropic, 'overloaded', 'Messages.', used), 'It got better.');
});

test('broken once', async (used) => {
  let error = await thrown(OpenAI.InternalServerError, () => chat(openaiOnce, 'broken', 'Chat.', used));
  same([error.status, error.error.message], [500, 'It broke.']);
  same(await chat(openaiOnce, 'broken', 'Chat.', used), 'It works again.');
  error = await thrown(Anthropic.InternalServerError, () => messages(anthropicOnce, 'broken', 'Messages.', used));
  same(error.error.error, { type: 'api_error', message: 'It broke.' });
  same(await messages(anthropic, 'broken', 'Messages.', used), 'It works again.');
  same(await responses(openai, 'broken', 'Responses.', used), 'It works again.');
});

test('the next in the chain', async (used) => {
  const call = openai.chat.completions.create({ model: 'backed', messages: said('Hi.') });
  const { data, response } = await call.withResponse();
  same(response.headers.get('x-herma-upstream'), 'talk/talk');
  same(data.choices[0].message.content, GREETING);
  used.push(chatUsage(data.usage));
});
