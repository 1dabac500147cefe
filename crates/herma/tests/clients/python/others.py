"""What else may be called."""

from kit import by_anthropic, by_openai, case, same

MODELS = ["backed", "broken", "busy", "cut", "endless", "late", "overloaded", "slow", "small-talk", "talk", "tools"]


@case("models")
def models(used):
    same([model.id for model in by_openai().models.list()], MODELS)
    same([model.id for model in by_anthropic().models.list()], MODELS)
    same([model.id for model in by_anthropic("POOR").models.list(limit=20)], ["small-talk", "talk"])


@case("embeddings")
def embeddings(used):
    given = by_openai().embeddings.create(model="talk", input=["one", "two"])
    same([row.embedding for row in given.data], [[1.0, 0.0, 0.0, 0.0]] * 2)
    used.append({"input": given.usage.prompt_tokens, "output": 0})


@case("completions")
def completions(used):
    given = by_openai().completions.create(model="talk", prompt="Hi.")
    same(given.choices[0].text, "Done.")
    used.append({"input": given.usage.prompt_tokens, "output": given.usage.completion_tokens})
