//! Tab completion, `?` and `help`.

use serde_json::json;

use crate::command::Command;
use crate::error::CliError;
use crate::filter::FILTERS;
use crate::lexer::{TokenKind, tokenize};
use crate::output::{Align, Output, Table};
use crate::tree::{CommandTree, Node, first_line};

/// Maximum number of completions.
const MAX_OFFERS: usize = 200;

/// A completion at the cursor.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Completion {
    /// The word in full; in the list for `?` also a grammar or `<cr>`.
    pub word: String,
    /// Short help; may be empty.
    pub help: String,
}

impl Completion {
    fn new(word: impl Into<String>, help: impl Into<String>) -> Self {
        Self { word: word.into(), help: help.into() }
    }
}

/// The words before the cursor.
struct Before<'a> {
    /// Whole words of the command.
    words: Vec<&'a str>,
    /// Beginning of the word at the cursor.
    partial: &'a str,
    /// Words after the last bar, if the cursor is after one.
    filter: Option<Vec<&'a str>>,
}

/// Returns `None` inside a quote or a group, where nothing can be offered.
fn before_cursor(line: &str, cursor: usize) -> Option<Before<'_>> {
    let mut end = cursor.min(line.len());
    while !line.is_char_boundary(end) {
        end -= 1;
    }
    let text = &line[..end];
    let text = text.rsplit_once('\n').map_or(text, |(_, last)| last);
    let mut tokens = tokenize(text).ok()?;
    let mut partial = "";
    if let Some(last) = tokens.last().copied().filter(|t| t.end == text.len()) {
        let plain = last.kind == TokenKind::Word && last.end - last.start == last.text.len();
        if plain {
            partial = last.text;
            tokens.pop();
        } else if last.kind != TokenKind::Pipe {
            return None;
        }
    }
    let bar = tokens.iter().rposition(|t| t.kind == TokenKind::Pipe);
    let first_bar = tokens.iter().position(|t| t.kind == TokenKind::Pipe);
    let words = tokens[..first_bar.unwrap_or(tokens.len())].iter().map(|t| t.text).collect();
    let filter = bar.map(|i| tokens[i + 1..].iter().map(|t| t.text).collect());
    Some(Before { words, partial, filter })
}

impl<C: 'static> CommandTree<C> {
    /// Returns the possible words at `cursor` (a byte offset into `line`), sorted.
    pub fn complete(&self, cx: &C, line: &str, cursor: usize) -> Vec<Completion> {
        let Some(before) = before_cursor(line, cursor) else { return Vec::new() };
        let partial = before.partial;
        let mut found = match &before.filter {
            Some(words) if words.is_empty() => {
                FILTERS.iter().map(|(name, _, help)| Completion::new(*name, *help)).collect()
            }
            Some(_) => Vec::new(),
            None => self.offers(cx, &before),
        };
        found.retain(|c| c.word.starts_with(partial));
        found.sort();
        found.dedup_by(|a, b| a.word == b.word);
        found.truncate(MAX_OFFERS);
        found
    }

    /// Returns the list for `?` at `cursor`: the words that could follow, and the grammar of what
    /// was typed.
    pub fn help_at(&self, cx: &C, line: &str, cursor: usize) -> Vec<Completion> {
        let mut found = self.complete(cx, line, cursor);
        let Some(before) = before_cursor(line, cursor) else { return found };
        if !before.partial.is_empty() {
            return found;
        }
        let (grammar, help) = match &before.filter {
            Some(words) => match FILTERS.iter().find(|f| words.first() == Some(&f.0)) {
                Some((_, grammar, help)) => (*grammar, *help),
                None => return found,
            },
            None => match self.command_of(&before.words) {
                Some((command, _)) => (command.usage(), first_line(command.help())),
                None => return found,
            },
        };
        if needs_nothing(grammar) {
            found.push(Completion::new("<cr>", help));
        }
        if !grammar.is_empty() {
            found.push(Completion::new(grammar, help));
        }
        found
    }

    /// Returns the command that `words` call, and the number of words of its path.
    fn command_of(&self, words: &[&str]) -> Option<(&'static dyn Command<C>, usize)> {
        (0..=words.len()).rev().find_map(|n| {
            let (node, _, used) = self.descend(&words[..n]);
            node.command.filter(|_| used == n).map(|c| (c, n))
        })
    }

    fn offers(&self, cx: &C, before: &Before<'_>) -> Vec<Completion> {
        let words = &before.words;
        let mut found = Vec::new();
        let (node, _, used) = self.descend(words);
        if used == words.len() {
            found.extend(children(node));
        }
        if let Some((command, used)) = self.command_of(words) {
            let offers = command.complete(cx, &words[used..], before.partial);
            found.extend(offers.into_iter().map(|w| Completion::new(w, "")));
        }
        found
    }

    /// Writes the output of `help topic`.
    pub(crate) fn help(&self, topic: &str, out: &mut Output) -> Result<(), CliError> {
        let tokens = tokenize(topic)?;
        let words: Vec<&str> = tokens.iter().map(|t| t.text).collect();
        let (node, path, used) = self.descend(&words);
        let command = if used == words.len() { node.command } else { None };
        // Words that match nothing: arguments of a command, or an error that resolving explains.
        if used < words.len() {
            let command = self.resolve(&tokens)?.command;
            describe(command, out);
            return Ok(());
        }
        let words: Vec<Completion> = children(node).collect();
        out.json(json!({
            "path": path,
            "usage": command.map(|c| c.usage()),
            "help": command.map(|c| c.help()),
            "words": words.iter().map(|c| json!({"word": c.word, "help": c.help})).collect::<Vec<_>>(),
        }));
        if let Some(command) = command {
            describe(command, out);
        }
        if !words.is_empty() && command.is_some() {
            out.line("");
        }
        write!(out, "{}", listing(&words));
        if topic.is_empty() {
            out.line("\nWords may be abbreviated. `help <command>' and `<words> ?' show more;");
            out.line(
                "`| grep', `| json' and other filters may follow a command (`<command> | ?').",
            );
        }
        Ok(())
    }

    /// Writes the output of `show cli`: every command with its grammar.
    pub(crate) fn list(&self, filter: &str, out: &mut Output) {
        let mut all = Vec::new();
        for command in self.commands().iter().filter(|c| c.path().contains(filter)) {
            let grammar = format!("{} {}", command.path(), command.usage());
            let short = first_line(command.help());
            out.line(two_columns(grammar.trim_end(), short));
            all.push(json!({"path": command.path(), "usage": command.usage(), "help": short}));
        }
        out.json(serde_json::Value::Array(all));
    }
}

/// True if a grammar, or one of its alternatives, consists of parts in brackets only.
fn needs_nothing(grammar: &str) -> bool {
    let mut depth = 0usize;
    let required = grammar.chars().map(|c| {
        depth += usize::from(c == '[');
        let outside = depth == 0;
        depth -= usize::from(c == ']' && !outside);
        if outside { c } else { '[' }
    });
    let required: String = required.collect();
    let is_empty = |part: &str| part.chars().all(|c| "[| .".contains(c));
    required.split(" | ").any(is_empty)
}

/// Formats a command's grammar and its help next to it, or below it if there is no room.
fn two_columns(grammar: &str, what: &str) -> String {
    const ROOM: usize = 40;
    let wrap = if grammar.len() > ROOM { format!("\n{:ROOM$}", "") } else { String::new() };
    format!("{grammar:<ROOM$}{wrap}  {what}")
}

fn children<C>(node: &Node<C>) -> impl Iterator<Item = Completion> {
    let listed = node.children.iter().filter(|(_, n)| n.listed);
    listed.map(|(word, child)| Completion::new(*word, child.summary()))
}

fn describe<C>(command: &dyn Command<C>, out: &mut Output) {
    out.line(format_args!("{} {}", command.path(), command.usage()).to_string().trim_end());
    for line in command.help().lines() {
        out.line(format_args!("  {}", line.trim_end()).to_string().trim_end());
    }
    if let [first, rest @ ..] = command.aliases() {
        let all = rest.iter().fold((*first).to_owned(), |all, a| all + ", " + a);
        out.line(format_args!("  also: {all}"));
    }
}

/// Formats words in one column, their help in another.
pub(crate) fn listing(words: &[Completion]) -> String {
    let mut table = Table::new().column("", Align::Left, 0).column("", Align::Left, 20).column(
        "",
        Align::Left,
        0,
    );
    for c in words {
        table.row(["", &c.word, &c.help]);
    }
    table.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{TestCx, tree};

    #[test]
    fn long_grammars_have_lines_of_their_own() {
        let column = " ".repeat(42);
        assert_eq!(
            two_columns("show cli [<text>]", "List"),
            format!("{:42}List", "show cli [<text>]")
        );
        assert_eq!(two_columns(&"x".repeat(41), "Do"), format!("{}\n{column}Do", "x".repeat(41)));
    }

    #[test]
    fn enter_is_offered_only_where_nothing_is_required() {
        for grammar in ["", "[<a>]", "[a|b] [c [d] <n>]", "[<a>] ...", "<a> | [b]", "[a]|[b]"] {
            assert!(needs_nothing(grammar), "{grammar}");
        }
        for grammar in ["<a>", "[add|del] [count <n>] <prefix>", "[a] b|c", "[a] <b> | [c] <d>"] {
            assert!(!needs_nothing(grammar), "{grammar}");
        }
    }

    fn words(line: &str) -> Vec<String> {
        let found = tree().complete(&TestCx::default(), line, line.len());
        found.into_iter().map(|c| c.word).collect()
    }

    #[test]
    fn words_and_arguments_complete() {
        assert_eq!(words("sh"), ["show"]);
        assert_eq!(words("show i"), ["interface"]);
        assert_eq!(words("sh int "), ["address", "eth0", "eth1"]);
        assert_eq!(words("show interface eth1"), ["eth1"]);
        assert_eq!(words("show interface eth0 x"), [""; 0]);
        assert_eq!(words("nothing "), [""; 0]);
        assert_eq!(words("show interface 'et"), [""; 0]);
        assert_eq!(words("echo {"), [""; 0]);
        assert_eq!(words("show errors | g"), ["grep"]);
        assert_eq!(
            words("show errors |"),
            ["count", "exclude", "grep", "head", "include", "json", "json-pretty"]
        );
        assert_eq!(words("x\nsho"), ["show"]);
        // The cursor may be inside the line, or anywhere at all.
        assert_eq!(tree().complete(&TestCx::default(), "sho interface", 3)[0].word, "show");
        let all = tree().complete(&TestCx::default(), "\u{e9}", 1);
        assert!(all.len() > 5);
    }

    #[test]
    fn a_question_mark_shows_the_grammar() {
        let help = |line: &str| tree().help_at(&TestCx::default(), line, line.len());
        let show = help("show interface ");
        assert_eq!(show[show.len() - 2].word, "<cr>");
        assert_eq!(show[show.len() - 1].word, "[<interface>]");
        assert_eq!(help("wait ")[0], Completion::new("<seconds>", "Wait for a number of seconds"));
        assert_eq!(help("show errors | head ")[1].word, "[<lines>]");
        assert!(help("show ").iter().all(|c| c.word != "<cr>"));
        assert_eq!(help("sh")[0].help, "cli, errors, interface, text");
    }

    proptest::proptest! {
        #[test]
        fn no_line_panics(line in "(show |int|wait|\\||\\{|'|\u{e9}| |\n|json){0,8}", cursor in 0usize..50) {
            let (tree, cx) = (tree(), TestCx::default());
            for c in tree.complete(&cx, &line, cursor) {
                proptest::prop_assert!(!c.word.is_empty());
            }
            let _ = tree.help_at(&cx, &line, cursor);
            let _ = tree.help(&line, &mut Output::new());
        }
    }
}
