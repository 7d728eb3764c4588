//! Random sentences of the grammar in which commands describe their arguments, such as
//! `<interface> [rate <n>] enable|disable | all`.

use fastrand::Rng;
use std::iter::Peekable;
use std::str::Chars;

/// A piece of a grammar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// A word as it is.
    Word(String),
    /// A value of a kind: `<interface>`.
    Value(String),
    /// Pieces without spaces between them: `<address>:<port>`.
    Joined(Vec<Part>),
    /// Words one after the other.
    Sequence(Vec<Part>),
    /// One of these.
    Choice(Vec<Part>),
    /// An optional part.
    Option(Box<Part>),
    /// More of what is before it: `...`.
    Again,
}

/// Share of optional parts that are there, in percent.
const OPTIONAL: u8 = 35;

impl Part {
    /// Reads a grammar. Parts that it does not understand are words.
    pub(super) fn parse(text: &str) -> Part {
        Parser(text.chars().peekable()).choice()
    }

    /// Appends a random sentence; `value` makes values of a kind.
    pub(super) fn say(
        &self,
        rng: &mut Rng,
        out: &mut String,
        value: &mut dyn FnMut(&mut Rng, &str) -> String,
    ) {
        match self {
            Part::Word(word) => out.push_str(word),
            Part::Value(kind) => out.push_str(&value(rng, kind)),
            Part::Joined(parts) => parts.iter().for_each(|part| part.say(rng, out, value)),
            Part::Choice(parts) => {
                if !parts.is_empty() {
                    parts[rng.usize(..parts.len())].say(rng, out, value);
                }
            }
            Part::Option(part) => {
                if rng.u8(..100) < OPTIONAL {
                    part.say(rng, out, value);
                }
            }
            Part::Sequence(parts) => {
                for (at, part) in parts.iter().enumerate() {
                    let (part, times) = match part {
                        Part::Again if at == 0 => continue,
                        Part::Again => (&parts[at - 1], rng.usize(..3)),
                        part => (part, 1),
                    };
                    for _ in 0..times {
                        if !out.is_empty() && !out.ends_with(' ') {
                            out.push(' ');
                        }
                        part.say(rng, out, value);
                    }
                }
            }
            Part::Again => {}
        }
    }
}

struct Parser<'t>(Peekable<Chars<'t>>);

impl Parser<'_> {
    /// Sequences with a `|` between spaces, up to the end or a closing bracket.
    fn choice(&mut self) -> Part {
        let mut all = vec![self.sequence()];
        while self.0.next_if_eq(&'|').is_some() {
            all.push(self.sequence());
        }
        one_or(all, Part::Choice)
    }

    fn sequence(&mut self) -> Part {
        let mut parts = Vec::new();
        loop {
            while self.0.next_if(|c| c.is_whitespace()).is_some() {}
            match self.0.peek() {
                None | Some(']' | '}' | '|') => return one_or(parts, Part::Sequence),
                Some(_) => parts.push(self.item()),
            }
        }
    }

    /// Word of a command's help: `tcp|udp`, `<n>|all`, `<address>:<port>`.
    fn item(&mut self) -> Part {
        let (mut choices, mut joined) = (Vec::new(), Vec::new());
        loop {
            match self.0.peek().copied() {
                Some('[') => {
                    self.0.next();
                    joined.push(Part::Option(Box::new(self.choice())));
                    self.0.next_if_eq(&']');
                }
                Some('{') => {
                    self.0.next();
                    joined.push(self.choice());
                    self.0.next_if_eq(&'}');
                }
                Some('<') => {
                    self.0.next();
                    let mut name = String::new();
                    while let Some(c) = self.0.next_if(|c| *c != '>') {
                        name.push(c);
                    }
                    self.0.next();
                    joined.push(Part::Value(name));
                }
                Some('|') => {
                    self.0.next();
                    choices.push(one_or(std::mem::take(&mut joined), Part::Joined));
                }
                Some(c) if !c.is_whitespace() && !"]}".contains(c) => {
                    let mut word = String::new();
                    while let Some(c) =
                        self.0.next_if(|c| !c.is_whitespace() && !"[]{}<|".contains(*c))
                    {
                        word.push(c);
                    }
                    joined.push(if word == "..." { Part::Again } else { Part::Word(word) });
                }
                _ => break,
            }
        }
        choices.push(one_or(joined, Part::Joined));
        one_or(choices, Part::Choice)
    }
}

/// The only one, or all of them as one.
fn one_or(mut parts: Vec<Part>, all: impl FnOnce(Vec<Part>) -> Part) -> Part {
    match parts.pop() {
        Some(only) if parts.is_empty() => only,
        Some(last) => {
            parts.push(last);
            all(parts)
        }
        None => all(parts),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All sentences that many tries find, sorted.
    fn sentences(grammar: &str) -> Vec<String> {
        let (part, mut rng) = (Part::parse(grammar), Rng::with_seed(1));
        let mut all: Vec<String> = (0..500)
            .map(|_| {
                let mut out = String::new();
                part.say(&mut rng, &mut out, &mut |_, kind| kind.to_uppercase());
                out.trim_end().to_owned()
            })
            .collect();
        all.sort();
        all.dedup();
        all
    }

    #[test]
    fn sentences_are_those_of_the_grammar() {
        let [one, two] = ["a B", "a B c"];
        assert_eq!(sentences("a <b> [c]"), [one, two]);
        assert_eq!(
            sentences("on|off <n>:<m> x|<y>"),
            ["off N:M Y", "off N:M x", "on N:M Y", "on N:M x"]
        );
        assert_eq!(sentences("limit <n> | none"), ["limit N", "none"]);
        assert_eq!(
            sentences("{in <i> | out} ..."),
            [
                "in I",
                "in I in I",
                "in I in I in I",
                "in I in I out",
                "in I out",
                "in I out in I",
                "in I out out",
                "out",
                "out in I",
                "out in I in I",
                "out in I out",
                "out out",
                "out out in I",
                "out out out"
            ]
        );
    }

    #[test]
    fn whatever_is_no_grammar_ends() {
        for text in ["", "[", "a ] b", "<", "{ | }", "| |", "a|", "[...]", "]]"] {
            sentences(text);
        }
    }
}
