// What else may be called.

import { all, byAnthropic, byOpenAI, same, test } from './kit.js';

const MODELS = ['backed', 'broken', 'busy', 'cut', 'endless', 'late', 'overloaded', 'slow', 'small-talk', 'talk', 'tools'];

const names = async (list) => (await all(list)).map((model) => model.id);

test('models', async () => {
  same(await names(byOpenAI().models.list()), MODELS);
  same(await names(byAnthropic().models.list()), MODELS);
  same(await names(byAnthropic('POOR').models.list({ limit: 20 })), ['small-talk', 'talk']);
});

test('embeddings', async (used) => {
  const given = await byOpenAI().embeddings.create({ model: 'talk', input: ['one', 'two'] });
  same(given.data.map((row) => row.embedding), [[1, 0, 0, 0], [1, 0, 0, 0]]);
  used.push({ input: given.usage.prompt_tokens, output: 0 });
});

test('completions', async (used) => {
  const given = await byOpenAI().completions.create({ model: 'talk', prompt: 'Hi.' });
  same(given.choices[0].text, 'Done.');
  used.push({ input: given.usage.prompt_tokens, output: given.usage.completion_tokens });
});
