// What the cases share: the clients, and how a case reports what its library told it.

import assert from 'node:assert/strict';

import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';

export const URL = process.env.ROUTER;
export const GREETING = 'Hello there, it is good to hear from you today.';
export const THOUGHT = 'They greet me, so I greet back.';
export const same = assert.deepEqual;

const CASES = [];

/** A case of the table in `cases.rs`. It gets a list, to which it adds the usage of each answer, in order. */
export function test(name, run) {
  CASES.push({ name, run });
}

/** Runs every case, and prints a line of JSON for each. */
export async function run() {
  for (const { name, run } of CASES) {
    const used = [];
    let failed = null;
    try {
      await run(used);
    } catch (error) {
      failed = error?.stack ?? String(error);
    }
    console.log(JSON.stringify({ case: name, used, failed }));
  }
}

export function byOpenAI(client = 'MAIN', options = {}) {
  return new OpenAI({ baseURL: `${URL}/v1`, apiKey: process.env[`${client}_TOKEN`], ...options });
}

export function byAnthropic(client = 'MAIN', options = {}) {
  return new Anthropic({ baseURL: URL, apiKey: process.env[`${client}_TOKEN`], ...options });
}

/** A conversation that consists of this. */
export function said(content) {
  return [{ role: 'user', content }];
}

export function chatUsage(usage) {
  return {
    input: usage.prompt_tokens,
    output: usage.completion_tokens,
    cached_input: usage.prompt_tokens_details.cached_tokens,
    reasoning: usage.completion_tokens_details.reasoning_tokens,
  };
}

export function responsesUsage(usage) {
  return {
    input: usage.input_tokens,
    output: usage.output_tokens,
    cached_input: usage.input_tokens_details.cached_tokens,
    reasoning: usage.output_tokens_details.reasoning_tokens,
  };
}

export function messagesUsage(usage) {
  const cached = usage.cache_read_input_tokens ?? 0;
  const written = usage.cache_creation_input_tokens ?? 0;
  return {
    input: usage.input_tokens + cached + written,
    output: usage.output_tokens,
    cached_input: cached,
    cache_write: written,
  };
}

export function has(text, part) {
  assert.ok(text.includes(part), `${JSON.stringify(part)} is not in ${JSON.stringify(text)}`);
}

export async function all(stream) {
  const items = [];
  for await (const item of stream) items.push(item);
  return items;
}

/** What `count` calls at once give. */
export function atOnce(count, ask) {
  return Promise.all(Array.from({ length: count }, ask));
}

/** The error that a call ends with, which is of exactly this kind. */
export async function thrown(kind, call) {
  let given;
  try {
    given = await call();
  } catch (error) {
    assert.equal(error.constructor, kind, `${error.constructor.name} instead of ${kind.name}: ${error.stack}`);
    return error;
  }
  assert.fail(`${kind.name} was not thrown, but given was ${JSON.stringify(given)}`);
}
