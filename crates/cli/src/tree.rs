//! The command tree and the resolution of words in it.

use std::collections::BTreeMap;
use std::ops::Bound;

use crate::builtin;
use crate::command::Command;
use crate::error::{CliError, DuplicatePath};
use crate::lexer::{Token, TokenKind};

/// All commands, by the words of their paths.
pub struct CommandTree<C: 'static> {
    pub(crate) root: Node<C>,
    commands: Vec<&'static dyn Command<C>>,
    pub(crate) unfinished: Option<Unfinished<C>>,
}

/// Follows work of a command that goes on after the command has returned.
pub struct Unfinished<C> {
    /// Number of works that ever went on so.
    pub begun: fn(&C) -> u64,
    /// Goes on with them; returns whether none is left.
    pub go_on: fn(&mut C) -> bool,
}

pub(crate) struct Node<C: 'static> {
    pub children: BTreeMap<&'static str, Node<C>>,
    pub command: Option<&'static dyn Command<C>>,
    /// True if a listed command's own path leads here or further.
    pub listed: bool,
}

impl<C> Default for Node<C> {
    fn default() -> Self {
        Self { children: BTreeMap::new(), command: None, listed: false }
    }
}

/// The children that match a word.
pub(crate) enum Match<'a, C: 'static> {
    One(&'static str, &'a Node<C>),
    None,
    Many(Vec<&'static str>),
}

/// Two entries for one command are not ambiguous.
fn same<C>(a: &'static dyn Command<C>, b: &'static dyn Command<C>) -> bool {
    a.path() == b.path()
}

impl<C> Node<C> {
    /// Returns the child called `word`, or the only one that begins with it.
    pub(crate) fn child(&self, word: &str) -> Match<'_, C> {
        if let Some((name, child)) = self.children.get_key_value(word) {
            return Match::One(name, child);
        }
        if word.is_empty() {
            return Match::None;
        }
        let found = self.begin_with(word);
        // Aliases must not make an abbreviation ambiguous that would be clear without them.
        let listed: Vec<_> = found.iter().filter(|(_, n)| n.listed).copied().collect();
        match (&found[..], &listed[..]) {
            ([], _) => Match::None,
            ([(name, child)], _) | (_, [(name, child)]) => Match::One(name, child),
            ([(name, child), rest @ ..], []) if rest.iter().all(|(_, n)| leads_alike(child, n)) => {
                Match::One(name, child)
            }
            (all, []) => Match::Many(all.iter().map(|(n, _)| *n).collect()),
            (_, listed) => Match::Many(listed.iter().map(|(n, _)| *n).collect()),
        }
    }

    fn begin_with(&self, word: &str) -> Vec<(&'static str, &Node<C>)> {
        let from = (Bound::Included(word), Bound::Unbounded);
        let after = self.children.range::<str, _>(from).map(|(name, node)| (*name, node));
        after.take_while(|(name, _)| name.starts_with(word)).collect()
    }

    /// Returns the words that may follow, without aliases.
    pub(crate) fn words(&self) -> Vec<String> {
        let listed = self.children.iter().filter(|(_, n)| n.listed);
        listed.map(|(name, _)| (*name).to_owned()).collect()
    }

    /// Returns a line about this node for lists: the command's own, or the words that follow.
    pub(crate) fn summary(&self) -> String {
        match self.command {
            Some(command) => first_line(command.help()).to_owned(),
            None => {
                let words = self.words();
                let shown = words.iter().take(5).map(String::as_str).collect::<Vec<_>>();
                let more = if words.len() > shown.len() { ", ..." } else { "" };
                format!("{}{more}", shown.join(", "))
            }
        }
    }
}

fn leads_alike<C>(a: &Node<C>, b: &Node<C>) -> bool {
    match (a.command, b.command) {
        (Some(x), Some(y)) => same(x, y) && a.children.is_empty() && b.children.is_empty(),
        _ => false,
    }
}

pub(crate) fn first_line(help: &str) -> &str {
    help.lines().next().unwrap_or("")
}

/// Result of resolving a command's words.
pub(crate) struct Resolved<C: 'static> {
    pub command: &'static dyn Command<C>,
    /// Number of words used.
    pub used: usize,
}

impl<C: 'static> CommandTree<C> {
    /// Builds the tree of `commands` and the built-in ones (`help`, `exec`, `wait` and so on).
    ///
    /// # Errors
    /// [`DuplicatePath`] if two paths (aliases count) are the same, or one has no words.
    pub fn new(commands: Vec<&'static dyn Command<C>>) -> Result<Self, DuplicatePath> {
        let mut tree = Self { root: Node::default(), commands: Vec::new(), unfinished: None };
        for command in builtin::commands().into_iter().chain(commands) {
            tree.insert(command)?;
        }
        tree.commands.sort_by_key(|c| c.path());
        Ok(tree)
    }

    /// Lets a command end only when its work is done.
    #[must_use]
    pub fn finishing(mut self, unfinished: Unfinished<C>) -> Self {
        self.unfinished = Some(unfinished);
        self
    }

    fn insert(&mut self, command: &'static dyn Command<C>) -> Result<(), DuplicatePath> {
        let aliases = command.aliases().iter().map(|a| (*a, false));
        for (path, listed) in std::iter::once((command.path(), command.listed())).chain(aliases) {
            let mut node = &mut self.root;
            for word in path.split_whitespace() {
                node = node.children.entry(word).or_default();
                node.listed |= listed;
            }
            let taken = path.trim().is_empty() || node.command.is_some();
            if taken {
                let words: Vec<_> = path.split_whitespace().collect();
                return Err(DuplicatePath { path: words.join(" ") });
            }
            node.command = Some(command);
        }
        self.commands.push(command);
        Ok(())
    }

    /// Returns all commands, sorted by path.
    pub fn commands(&self) -> &[&'static dyn Command<C>] {
        &self.commands
    }

    /// Finds the command that the first words of `tokens` call.
    pub(crate) fn resolve(&self, tokens: &[Token<'_>]) -> Result<Resolved<C>, CliError> {
        let mut node = &self.root;
        let mut path: Vec<&'static str> = Vec::new();
        let mut best: Option<Resolved<C>> = None;
        loop {
            if let Some(command) = node.command {
                best = Some(Resolved { command, used: path.len() });
            }
            let Some(token) = tokens.get(path.len()) else { break };
            if token.kind != TokenKind::Word {
                break;
            }
            match node.child(token.text) {
                Match::One(word, child) => {
                    path.push(word);
                    node = child;
                }
                Match::None => break,
                Match::Many(candidates) => {
                    return Err(CliError::Ambiguous {
                        path: path.join(" "),
                        input: token.text.to_owned(),
                        candidates: candidates.into_iter().map(str::to_owned).collect(),
                    });
                }
            }
        }
        best.ok_or_else(|| {
            let input = tokens.get(path.len()).map_or("", |t| t.text);
            CliError::unknown(&path.join(" "), input, node.words())
        })
    }

    /// Follows `words` as far as they match; returns the node, its path, and the number of words
    /// used.
    pub(crate) fn descend(&self, words: &[&str]) -> (&Node<C>, String, usize) {
        let mut node = &self.root;
        let mut path: Vec<&'static str> = Vec::new();
        for word in words {
            let Match::One(name, child) = node.child(word) else { break };
            path.push(name);
            node = child;
        }
        (node, path.join(" "), path.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexer::tokenize;
    use crate::testing::{TestCx, named};

    fn tree() -> CommandTree<TestCx> {
        CommandTree::new(vec![
            named("show interface", &[]),
            named("show interface address", &["show int-address"]),
            named("show interface rx-mode", &[]),
            named("show interface rx-placement", &[]),
            named("show errors", &["show err"]),
            named("show runtime", &[]),
            named("set interface state", &[]),
            named("sflow enable-disable", &[]),
            named("ip route", &[]),
            named("ip route cache flush", &[]),
        ])
        .unwrap()
    }

    fn resolve(line: &str) -> Result<(String, usize), String> {
        let tokens = tokenize(line).unwrap();
        let found = tree().resolve(&tokens);
        found.map(|r| (r.command.path().to_owned(), r.used)).map_err(|e| e.to_string())
    }

    #[test]
    fn words_are_matched_by_unique_prefix() {
        for (line, path, used) in [
            ("show interface", "show interface", 2),
            ("sh int", "show interface", 2),
            ("sh int a", "show interface address", 3),
            ("sh int loop0", "show interface", 2),
            ("show int-a", "show interface address", 2),
            ("sh err", "show errors", 2),
            ("sh er", "show errors", 2),
            ("sfl enable host-eth0", "sflow enable-disable", 2),
            ("ip route c x", "ip route", 2),
            ("ip route c f x", "ip route cache flush", 4),
        ] {
            assert_eq!(resolve(line), Ok((path.to_owned(), used)), "{line}");
        }
    }

    #[test]
    fn errors_list_the_possible_words() {
        let err = |line| resolve(line).unwrap_err();
        assert_eq!(
            err("show foo"),
            "show: unknown input `foo'\n  could be: cli, errors, interface, runtime"
        );
        assert_eq!(
            err("sh interfcae"),
            "show: unknown input `interfcae'\n  did you mean `interface'? could be: cli, errors, \
             interface, runtime"
        );
        assert!(err("show").starts_with("show: unknown input `'\n"));
        assert!(err("").starts_with("unknown input `'\n  could be: "));
        assert_eq!(err("s int"), "ambiguous input `s'\n  could be: set, sflow, show");
        assert_eq!(
            err("sh int rx"),
            "show interface: ambiguous input `rx'\n  could be: rx-mode, rx-placement"
        );
        assert!(err("show {x}").starts_with("show: unknown input `x'"));
    }

    #[test]
    fn no_path_twice() {
        let twice = CommandTree::new(vec![named("a b", &[]), named("c", &["a  b"])]);
        assert_eq!(twice.err().unwrap().to_string(), "CLI command path `a b' is registered twice");
        assert!(CommandTree::new(vec![named(" ", &[])]).is_err());
        assert!(CommandTree::new(vec![named("help", &[])]).is_err());
    }
}
