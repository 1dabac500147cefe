//! A shell script cut into simple commands: enough to read what an agent's tool call says, not a shell.

use std::iter::Peekable;
use std::str::Chars;

/// One command and its arguments, without redirections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Simple {
    /// The words without their quotes.
    pub(crate) words: Vec<String>,
    /// The bodies of its here-documents.
    pub(crate) input: Vec<String>,
}

/// A script in pieces.
#[derive(Debug, Default)]
pub(crate) struct ScriptParts {
    /// The simple commands in order.
    pub(crate) commands: Vec<Simple>,
    /// The scripts inside `$(...)` and backticks.
    pub(crate) nested: Vec<String>,
}

/// Cuts a script into pieces. An unclosed piece ends with the text.
pub(crate) fn split(script: &str) -> ScriptParts {
    let mut splitter = Splitter { rest: script.chars().peekable(), ..Splitter::default() };
    while let Some(c) = splitter.rest.next() {
        splitter.take(c);
    }
    splitter.end_command();
    splitter.pieces
}

#[derive(Debug)]
struct Splitter<'a> {
    rest: Peekable<Chars<'a>>,
    pieces: ScriptParts,
    command: Simple,
    word: Option<String>,
    redirect: Redirect,
    /// Here-documents whose bodies start at the next line, each with its command.
    waiting: Vec<(String, usize)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Redirect {
    None,
    File,
    HereDocument,
}

impl Default for Splitter<'_> {
    fn default() -> Self {
        Self {
            rest: "".chars().peekable(),
            pieces: ScriptParts::default(),
            command: Simple::default(),
            word: None,
            redirect: Redirect::None,
            waiting: Vec::new(),
        }
    }
}

impl Splitter<'_> {
    fn take(&mut self, c: char) {
        match c {
            '\\' => match self.rest.next() {
                Some('\n') | None => {}
                Some(escaped) => self.push(escaped),
            },
            '\'' => {
                self.word.get_or_insert_default();
                while let Some(quoted) = self.rest.next_if(|c| *c != '\'') {
                    self.push(quoted);
                }
                self.rest.next();
            }
            '"' => self.take_double_quoted(),
            '$' => self.take_dollar(),
            '`' => self.take_backticks(),
            '#' if self.word.is_none() => while self.rest.next_if(|c| *c != '\n').is_some() {},
            '<' | '>' => self.take_redirect(c),
            '\n' => {
                self.end_command();
                self.take_here_documents();
            }
            ';' | '&' | '|' | '(' | ')' => self.end_command(),
            blank if blank.is_whitespace() => self.end_word(),
            plain => self.push(plain),
        }
    }

    fn push(&mut self, c: char) {
        self.word.get_or_insert_default().push(c);
    }

    fn take_double_quoted(&mut self) {
        self.word.get_or_insert_default();
        while let Some(c) = self.rest.next() {
            match c {
                '"' => return,
                '\\' => match self.rest.next() {
                    Some('\n') | None => {}
                    Some(escaped @ ('"' | '\\' | '$' | '`')) => self.push(escaped),
                    Some(other) => {
                        self.push('\\');
                        self.push(other);
                    }
                },
                '$' => self.take_dollar(),
                '`' => self.take_backticks(),
                plain => self.push(plain),
            }
        }
    }

    fn take_dollar(&mut self) {
        self.push('$');
        if self.rest.next_if_eq(&'(').is_none() {
            return;
        }
        let (mut script, mut depth) = (String::new(), 1);
        for c in self.rest.by_ref() {
            depth += i32::from(c == '(') - i32::from(c == ')');
            if depth == 0 {
                break;
            }
            script.push(c);
        }
        self.pieces.nested.push(script);
    }

    fn take_backticks(&mut self) {
        self.push('`');
        let script: String = std::iter::from_fn(|| self.rest.next_if(|c| *c != '`')).collect();
        self.rest.next();
        self.pieces.nested.push(script);
    }

    fn take_redirect(&mut self, first: char) {
        // The number of a file descriptor, as in `2>`, is no word.
        self.word.take_if(|word| word.bytes().all(|b| b.is_ascii_digit()));
        self.end_word();
        let mut operator = String::from(first);
        while let Some(c) = self.rest.next_if(|c| matches!(c, '<' | '>' | '&' | '|' | '-')) {
            operator.push(c);
        }
        self.redirect =
            if matches!(operator.as_str(), "<<" | "<<-") { Redirect::HereDocument } else { Redirect::File };
        // `2>&-` closes: no word follows.
        if operator.ends_with("&-") {
            self.redirect = Redirect::None;
        }
    }

    fn take_here_documents(&mut self) {
        for (end, command) in std::mem::take(&mut self.waiting) {
            let mut body = String::new();
            while self.rest.peek().is_some() {
                let line: String = std::iter::from_fn(|| self.rest.next_if(|c| *c != '\n')).collect();
                self.rest.next();
                if line.trim_start_matches('\t') == end {
                    break;
                }
                body.push_str(&line);
                body.push('\n');
            }
            if let Some(reader) = self.pieces.commands.get_mut(command) {
                reader.input.push(body);
            }
        }
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        match std::mem::replace(&mut self.redirect, Redirect::None) {
            Redirect::None => self.command.words.push(word),
            Redirect::File => {}
            Redirect::HereDocument => self.waiting.push((word, self.pieces.commands.len())),
        }
    }

    fn end_command(&mut self) {
        self.end_word();
        self.redirect = Redirect::None;
        let reads = self.waiting.iter().any(|(_, command)| *command == self.pieces.commands.len());
        if reads || !self.command.words.is_empty() {
            self.pieces.commands.push(std::mem::take(&mut self.command));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(script: &str) -> Vec<String> {
        split(script).commands.iter().map(|command| command.words.join("|")).collect()
    }

    #[test]
    fn scripts_fall_into_commands() {
        assert_eq!(words("a 'b c' \"d \\\" e\"f g\\ h"), ["a|b c|d \" ef|g h"]);
        assert_eq!(words("a&&b||c;d|e&f\ng"), ["a", "b", "c", "d", "e", "f", "g"]);
        assert_eq!(words("(a b) # c; d\ne"), ["a|b", "e"]);
        assert_eq!(words("a >x 2>&1 b <y"), ["a|b"]);
        assert_eq!(words("a \\\n b"), ["a|b"]);
        assert_eq!(words("a 'b"), ["a|b"]);
    }

    #[test]
    fn substitutions_are_scripts_of_their_own() {
        let pieces = split("echo \"$(a (b) c)\" `d e` $f");
        assert_eq!(pieces.nested, ["a (b) c", "d e"]);
        assert_eq!(pieces.commands[0].words, ["echo", "$", "`", "$f"]);
    }

    #[test]
    fn here_documents_are_input() {
        let pieces = split("cat > f <<'END' && b\ngit push\nEND\nc");
        assert_eq!(words("cat > f <<'END' && b\ngit push\nEND\nc"), ["cat", "b", "c"]);
        assert_eq!(pieces.commands[0].input, ["git push\n"]);
    }
}
