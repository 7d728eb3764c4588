//! Patterns of `| grep`: plain text with `.`, `*`, `^`, `$`, `|` (or `\|`) and `\` to escape the
//! next character. All else is itself, such as the brackets and signs of VPP's names. Matching
//! takes time proportional to pattern times line, whatever the pattern: it runs on the main thread.

use regex_lite::Regex;

/// Maximum length of a pattern, in characters.
const MAX_CHARS: usize = 200;

/// Alternatives, one of which must occur in a line.
#[derive(Debug)]
pub(crate) struct Pattern {
    regex: Regex,
    any_case: bool,
}

impl Pattern {
    pub(crate) fn new(text: &str, any_case: bool) -> Result<Self, String> {
        if text.chars().count() > MAX_CHARS {
            return Err(format!("pattern is too long: at most {MAX_CHARS} characters"));
        }
        let regex = Regex::new(&translated(text, any_case)?).map_err(|e| e.to_string())?;
        Ok(Self { regex, any_case })
    }

    pub(crate) fn matches(&self, line: &str) -> bool {
        if self.any_case {
            let folded: String = line.chars().map(|c| fold(c, true)).collect();
            return self.regex.is_match(&folded);
        }
        self.regex.is_match(line)
    }
}

/// The library folds ASCII only.
fn fold(c: char, any_case: bool) -> char {
    if any_case { c.to_lowercase().next().unwrap_or(c) } else { c }
}

/// The pattern in the library's syntax, which has more operators.
fn translated(text: &str, any_case: bool) -> Result<String, String> {
    // The dot is any character, a line feed, too.
    let mut out = String::from("(?s)");
    // True once the alternative has a character that `*` can repeat.
    let mut repeatable = false;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let last = chars.peek().is_none_or(|c| *c == '|');
        let literal = match c {
            '^' if !repeatable => None,
            '$' if last => None,
            '*' if repeatable => None,
            '.' | '|' => None,
            '\\' => match chars.next() {
                Some('|') => {
                    (out, repeatable) = (out + "|", false);
                    continue;
                }
                Some(c) => Some(c),
                None => return Err("pattern ends in a lone `\\'".to_owned()),
            },
            c => Some(c),
        };
        match literal {
            Some(c) => out += &regex_lite::escape(&fold(c, any_case).to_string()),
            None => out.push(c),
        }
        repeatable = literal.is_some() || c == '.' || c == '*';
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn matches(pattern: &str, line: &str) -> bool {
        Pattern::new(pattern, false).unwrap().matches(line)
    }

    #[test]
    fn the_usual_operators_work() {
        for (pattern, line, want) in [
            ("rx", "tx rx", true),
            ("rx", "tx", false),
            ("", "", true),
            ("^rx", "tx rx", false),
            ("^rx$", "rx", true),
            ("^rx$", "rxx", false),
            ("^$", "", true),
            ("^$", "a", false),
            ("a.c", "xabc", true),
            ("a.*c", "a---c", true),
            ("ab*c", "ac", true),
            ("ab*c", "abbbc", true),
            ("ab*c", "adc", false),
            ("10.0.0.1", "10.0.0.1/24", true),
            ("drop|punt", "x punt y", true),
            ("drop\\|punt", "x punt y", true),
            ("^drop|punt$", "a drop", false),
            ("a$b", "a$b", true),
            ("a^b", "a^b", true),
            ("\\.", "ab", false),
            ("*", "a*", true),
            ("^*", "*a", true),
            ("x.*$", "wxyz", true),
            ("a**b", "aab", true),
        ] {
            assert_eq!(matches(pattern, line), want, "{pattern} in {line}");
        }
        assert!(Pattern::new("HoSt", true).unwrap().matches("hOsT-eth0"));
        assert!(Pattern::new("MÜLL", true).unwrap().matches("müll"));
        assert!(Pattern::new("a\\", false).is_err());
        assert!(Pattern::new(&"a".repeat(MAX_CHARS + 1), false).is_err());
    }

    #[test]
    fn other_operators_of_the_library_are_themselves() {
        for text in ["eth0[1]", "a+b?", "(x)", "{1,2}", "#&~-", "a\\d"] {
            assert!(matches(text, &text.replace('\\', "")), "{text}");
        }
        assert!(!matches("[ab]", "a") && !matches("a+b", "aab") && !matches("\\d", "1"));
    }

    /// Items that must follow one another in a line, and flags for its start and end. `None` is the
    /// dot; the flag is the star.
    type Alternative = (bool, Vec<(Option<char>, bool)>, bool);

    fn text(alternatives: &[Alternative]) -> String {
        let one = |(start, atoms, end): &Alternative| {
            let atom = |(c, many): &(Option<char>, bool)| {
                format!("{}{}", c.unwrap_or('.'), if *many { "*" } else { "" })
            };
            let atoms: String = atoms.iter().map(atom).collect();
            format!("{}{atoms}{}", if *start { "^" } else { "" }, if *end { "$" } else { "" })
        };
        alternatives.iter().map(one).collect::<Vec<_>>().join("|")
    }

    /// The obvious matcher, which takes exponential time.
    fn naive(atoms: &[(Option<char>, bool)], line: &[char], at_end: bool) -> bool {
        let Some(((atom, many), rest)) = atoms.split_first() else {
            return !at_end || line.is_empty();
        };
        let one = line.first().is_some_and(|c| atom.is_none_or(|atom| atom == *c));
        if *many {
            naive(rest, line, at_end) || (one && naive(atoms, &line[1..], at_end))
        } else {
            one && naive(rest, &line[1..], at_end)
        }
    }

    proptest! {
        #[test]
        fn agrees_with_the_obvious_matcher(
            alternatives in prop::collection::vec(
                (
                    any::<bool>(),
                    prop::collection::vec((prop::option::of(prop::char::range('a', 'b')), any::<bool>()), 0..4),
                    any::<bool>(),
                ),
                1..4,
            ),
            line in "[ab]{0,8}",
        ) {
            let p = Pattern::new(&text(&alternatives), false).unwrap();
            let chars: Vec<char> = line.chars().collect();
            let want = alternatives.iter().any(|(at_start, atoms, at_end)| {
                let starts = if *at_start { 0..=0 } else { 0..=chars.len() };
                starts.into_iter().any(|i| naive(atoms, &chars[i..], *at_end))
            });
            prop_assert_eq!(p.matches(&line), want);
        }

        /// Any text is a pattern, or an error that says why.
        #[test]
        fn no_text_panics(pattern in ".{0,40}", line in ".{0,40}", any_case: bool) {
            if let Ok(p) = Pattern::new(&pattern, any_case) {
                p.matches(&line);
            } else {
                prop_assert!(pattern.ends_with('\\'));
            }
        }
    }
}
