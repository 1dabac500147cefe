//! The order of the questions.

use herma_core::model_call::TokensUsed;

use super::capabilities::{Capabilities, LeftOut, Support};
use super::client::Client;
use super::exchange::{self, Miss, Reply};
use super::failed::{ProbeFailed, name};
use super::judge::{self, Content};
use super::question::Question;
use herma_dialect::Usage;
use herma_dialect::endpoint::{Endpoint, dialect_of};

/// Whom to ask, and with how much.
#[derive(Clone, Copy, Debug)]
pub(super) struct ModelProbe<'a> {
    pub(super) client: Client<'a>,
    pub(super) model: &'a str,
    /// The most tokens of output for each question.
    pub(super) output: u64,
}

impl ModelProbe<'_> {
    /// Asks at each endpoint whether there is content; then, where there is, for a stream and for a tool call.
    pub(super) async fn ask(&self, endpoints: &[Endpoint]) -> Result<Capabilities, ProbeFailed> {
        let mut found = Capabilities {
            content: Support::NotAsked,
            endpoints: Vec::new(),
            left_out: Vec::new(),
            model_answered: None,
            reasoning_only: false,
            streaming: Support::NotAsked,
            tool_calls: Support::NotAsked,
            used: TokensUsed::default(),
        };
        for &endpoint in endpoints {
            self.content(endpoint, &mut found).await?;
        }
        if found.endpoints.is_empty() {
            // The first reason is the one of the API that is asked first, and so the most telling.
            return Err(match found.left_out.into_iter().next() {
                Some(LeftOut { endpoint, why }) => ProbeFailed::NotTaken { endpoint, why },
                None => ProbeFailed::NoDoor,
            });
        }
        if found.content.is_yes() {
            for endpoint in found.endpoints.clone() {
                self.stream(endpoint, &mut found).await?;
                self.tool(endpoint, &mut found).await?;
            }
        }
        Ok(found)
    }

    async fn content(&self, endpoint: Endpoint, found: &mut Capabilities) -> Result<(), ProbeFailed> {
        let reply = match self.whole(endpoint, Question::Content).await {
            Ok(reply) => reply,
            Err(Miss::NotAsked(failed)) => return Err(failed),
            // A provider that does not answer here answers nowhere, unless it did before.
            Err(Miss::NoAnswer(why)) if found.endpoints.is_empty() => {
                return Err(ProbeFailed::Unavailable { endpoint, why });
            }
            Err(Miss::NoAnswer(why) | Miss::NotTaken { why, .. }) => {
                found.left_out.push(LeftOut { endpoint, why });
                return Ok(());
            }
        };
        count(found, &reply);
        let content = match judge::content(&reply) {
            Content::Yes => Support::Yes,
            Content::No(why) => Support::No(at(endpoint, why)),
            Content::ReasoningOnly => {
                if let Some(allowed) = reply.lowered_to {
                    return Err(ProbeFailed::TooLittleOutput { allowed, asked: self.output });
                }
                found.reasoning_only = true;
                let why =
                    format!("the model answered with reasoning and no content, with {} tokens", self.output);
                Support::No(at(endpoint, &why))
            }
        };
        found.endpoints.push(endpoint);
        found.content.also(content);
        Ok(())
    }

    async fn stream(&self, endpoint: Endpoint, found: &mut Capabilities) -> Result<(), ProbeFailed> {
        let dialect = dialect_of(endpoint);
        let body = Question::Stream.body(dialect, self.model, self.output);
        let streaming = match exchange::streamed(dialect, self.client.post(endpoint, body).await) {
            Ok(streamed) => {
                count(found, &streamed.reply);
                judge::streaming(&streamed)
            }
            Err(miss) => not_there(miss)?,
        };
        found.streaming.also(named(endpoint, streaming));
        Ok(())
    }

    async fn tool(&self, endpoint: Endpoint, found: &mut Capabilities) -> Result<(), ProbeFailed> {
        let mut reply = self.whole(endpoint, Question::Tool { must: true }).await;
        // Some models and servers know tools, but not that one must be called.
        if let Err(Miss::NotTaken { status: 400 | 422, .. }) = reply {
            reply = self.whole(endpoint, Question::Tool { must: false }).await;
        }
        let tool_calls = match reply {
            Ok(reply) => {
                count(found, &reply);
                judge::tool_calls(&reply)
            }
            Err(miss) => not_there(miss)?,
        };
        found.tool_calls.also(named(endpoint, tool_calls));
        Ok(())
    }

    async fn whole(&self, endpoint: Endpoint, question: Question) -> Result<Reply, Miss> {
        let dialect = dialect_of(endpoint);
        let body = question.body(dialect, self.model, self.output);
        exchange::whole(dialect, self.client.post(endpoint, body).await)
    }
}

/// A question that got no answer, of a model that did answer before.
fn not_there(miss: Miss) -> Result<Support, ProbeFailed> {
    match miss {
        Miss::NotAsked(failed) => Err(failed),
        Miss::NotTaken { why, .. } | Miss::NoAnswer(why) => Ok(Support::No(why)),
    }
}

fn named(endpoint: Endpoint, support: Support) -> Support {
    match support {
        Support::No(why) => Support::No(at(endpoint, &why)),
        support => support,
    }
}

fn at(endpoint: Endpoint, why: &str) -> String {
    format!("{}: {why}", name(endpoint))
}

fn count(found: &mut Capabilities, reply: &Reply) {
    if found.model_answered.is_none() {
        found.model_answered.clone_from(&reply.model);
    }
    let Some(usage) = reply.usage else { return };
    let Usage { input, output, cached_input, cache_write, cache_write_long: _, reasoning } = usage;
    let used = &mut found.used;
    for (sum, more) in [
        (&mut used.input, input),
        (&mut used.output, output),
        (&mut used.cached_input, cached_input),
        (&mut used.cache_write, cache_write),
        (&mut used.reasoning, reasoning),
    ] {
        *sum = sum.saturating_add(more);
    }
}
