// What the router refuses, as the libraries show it.

import assert from 'node:assert/strict';

import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';

import { GREETING, URL, byAnthropic, byOpenAI, chatUsage, has, said, same, test, thrown } from './kit.js';

const openai = byOpenAI();
const anthropic = byAnthropic();
const PICTURE = 'https://example.com/picture.png';

const chat = (options, client = openai) => () =>
  client.chat.completions.create({ model: 'talk', messages: said('Hi.'), ...options });
const responses = (options, client = openai) => () => client.responses.create({ model: 'talk', input: 'Hi.', ...options });
const messages = (options, client = anthropic) => () =>
  client.messages.create({ model: 'talk', max_tokens: 500, messages: said('Hi.'), ...options });

test('wrong token', async () => {
  const wrong = new OpenAI({ baseURL: `${URL}/v1`, apiKey: 'this-is-not-a-token' });
  let error = await thrown(OpenAI.AuthenticationError, chat({}, wrong));
  same([error.status, error.code], [401, 'invalid_api_key']);
  has(error.message, 'the token is missing, not known, or its run has ended');
  await thrown(OpenAI.AuthenticationError, () => wrong.models.list());

  error = await thrown(
    Anthropic.AuthenticationError,
    messages({}, new Anthropic({ baseURL: URL, apiKey: 'this-is-not-a-token' })),
  );
  same(error.error.error.type, 'authentication_error');
});

test('model not admitted', async () => {
  for (const call of [chat({ model: 'secret' }), chat({ model: 'Talk', stream: true }), responses({ model: 'secret' })]) {
    const error = await thrown(OpenAI.PermissionDeniedError, call);
    same([error.status, error.code, error.param], [403, 'model_mismatch', 'model']);
    has(error.message, 'is not admitted for this run');
  }
  await thrown(OpenAI.PermissionDeniedError, () => openai.embeddings.create({ model: 'secret', input: 'one' }));
  for (const call of [messages({ model: 'secret' }), messages({ model: 'secret', stream: true })]) {
    const error = await thrown(Anthropic.PermissionDeniedError, call);
    same(error.error.error.type, 'permission_error');
    has(error.error.error.message, 'the model `secret` is not admitted for this run');
  }
});

test('hosted tools', async () => {
  let error = await thrown(OpenAI.PermissionDeniedError, responses({ tools: [{ type: 'web_search' }] }));
  same([error.code, error.param], ['reaches_out', 'tools[0]']);
  has(error.message, 'is a tool that is not run by the client');
  error = await thrown(
    Anthropic.PermissionDeniedError,
    messages({ tools: [{ type: 'web_search_20250305', name: 'web_search' }] }),
  );
  has(error.error.error.message, 'is a tool that is not run by the client');
});

test('remote addresses', async () => {
  let image = [{ type: 'image_url', image_url: { url: PICTURE } }];
  has((await thrown(OpenAI.PermissionDeniedError, chat({ messages: said(image) }))).message, 'is a remote URL');
  image = [{ type: 'input_image', image_url: PICTURE, detail: 'auto' }];
  has((await thrown(OpenAI.PermissionDeniedError, responses({ input: said(image) }))).message, 'is a remote URL');
  image = [{ type: 'image', source: { type: 'url', url: PICTURE } }];
  const error = await thrown(Anthropic.PermissionDeniedError, messages({ messages: said(image) }));
  has(error.error.error.message, 'is a remote URL');
});

test('stored and in the background', async () => {
  for (const options of [{ previous_response_id: 'resp_1' }, { background: true }, { store: true }]) {
    same((await thrown(OpenAI.PermissionDeniedError, responses(options))).code, 'reaches_out');
  }
});

test('bad request', async () => {
  let error = await thrown(OpenAI.BadRequestError, chat({ max_completion_tokens: 'many' }));
  same([error.status, error.param], [400, 'max_completion_tokens']);
  error = await thrown(Anthropic.BadRequestError, messages({ max_tokens: 'many', stream: true }));
  same(error.error.error.type, 'invalid_request_error');
});

test('nothing there', async () => {
  await thrown(OpenAI.NotFoundError, () => openai.files.list());
  await thrown(Anthropic.NotFoundError, () => anthropic.messages.batches.list());
});

test('budget exhausted', async (used) => {
  const poor = byOpenAI('POOR');
  used.push(chatUsage((await chat({}, poor)()).usage));
  // Each of these is one call: the libraries do not try again.
  let error = await thrown(OpenAI.RateLimitError, chat({}, poor));
  same([error.status, error.code], [429, 'budget_exhausted']);
  has(error.message, 'the budget of this run is too small for this call');
  error = await thrown(OpenAI.RateLimitError, responses({ stream: true }, poor));
  same(error.code, 'budget_exhausted');
  error = await thrown(Anthropic.RateLimitError, messages({}, byAnthropic('POOR')));
  same(error.error.error.type, 'rate_limit_error');
});

test('output bounded by the budget', async (used) => {
  const { data, response } = await chat({}, byOpenAI('THRIFTY'))().withResponse();
  same(response.headers.get('x-herma-rewrites'), 'max_output');
  const most = Number(response.headers.get('x-herma-max-output'));
  assert.ok(3000 < most && most < 4000);
  same(data.choices[0].message.content, GREETING);
  used.push(chatUsage(data.usage));
});
