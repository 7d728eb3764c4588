//! Patterns of `| grep`: plain text with `.`, `*`, `^`, `$`, `|` (or `\|`) and `\` to escape the
//! next character. Matching takes time proportional to pattern times line, whatever the pattern: it
//! runs on the main thread.

/// Maximum length of a pattern, in characters.
const MAX_CHARS: usize = 200;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Atom {
    Any,
    Char(char),
}

/// Alternatives, one of which must occur in a line.
#[derive(Debug)]
pub(crate) struct Pattern {
    alternatives: Vec<Alternative>,
    any_case: bool,
}

#[derive(Debug, Default)]
struct Alternative {
    /// Atoms, and whether each may occur any number of times.
    atoms: Vec<(Atom, bool)>,
    at_start: bool,
    at_end: bool,
}

impl Pattern {
    pub(crate) fn new(text: &str, any_case: bool) -> Result<Self, String> {
        if text.chars().count() > MAX_CHARS {
            return Err(format!("pattern is too long: at most {MAX_CHARS} characters"));
        }
        let mut alternatives = vec![];
        let mut current = Alternative::default();
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            let last = chars.peek().is_none_or(|c| *c == '|');
            match c {
                '|' => alternatives.push(std::mem::take(&mut current)),
                '^' if current.atoms.is_empty() => current.at_start = true,
                '$' if last => current.at_end = true,
                '.' => current.atoms.push((Atom::Any, false)),
                '*' => match current.atoms.last_mut() {
                    Some((_, many)) => *many = true,
                    None => current.atoms.push((Atom::Char('*'), false)),
                },
                '\\' => match chars.next() {
                    Some('|') => alternatives.push(std::mem::take(&mut current)),
                    Some(c) => current.atoms.push((Atom::Char(fold(c, any_case)), false)),
                    None => return Err("pattern ends in a lone `\\'".to_owned()),
                },
                c => current.atoms.push((Atom::Char(fold(c, any_case)), false)),
            }
        }
        alternatives.push(current);
        Ok(Self { alternatives, any_case })
    }

    pub(crate) fn matches(&self, line: &str) -> bool {
        self.alternatives.iter().any(|a| a.matches(line, self.any_case))
    }
}

fn fold(c: char, any_case: bool) -> char {
    if any_case { c.to_lowercase().next().unwrap_or(c) } else { c }
}

impl Alternative {
    /// Scans the line once with the set of positions in the pattern that are reached.
    fn matches(&self, line: &str, any_case: bool) -> bool {
        let end = self.atoms.len();
        let mut now = vec![false; end + 1];
        let mut next = vec![false; end + 1];
        self.reach(&mut now, 0);
        for c in line.chars().map(|c| fold(c, any_case)) {
            if now[end] && !self.at_end {
                return true;
            }
            next.fill(false);
            for (i, (atom, many)) in self.atoms.iter().enumerate() {
                if now[i] && (*atom == Atom::Any || *atom == Atom::Char(c)) {
                    self.reach(&mut next, if *many { i } else { i + 1 });
                }
            }
            if !self.at_start {
                self.reach(&mut next, 0);
            }
            std::mem::swap(&mut now, &mut next);
        }
        now[end]
    }

    /// Marks position `i` and those after optional atoms.
    fn reach(&self, set: &mut [bool], mut i: usize) {
        set[i] = true;
        while self.atoms.get(i).is_some_and(|(_, many)| *many) {
            i += 1;
            set[i] = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            ("\\.", "ab", false),
            ("*", "a*", true),
            ("x.*$", "wxyz", true),
        ] {
            assert_eq!(matches(pattern, line), want, "{pattern} in {line}");
        }
        assert!(Pattern::new("HoSt", true).unwrap().matches("hOsT-eth0"));
        assert!(Pattern::new("a\\", false).is_err());
        assert!(Pattern::new(&"a".repeat(MAX_CHARS + 1), false).is_err());
    }

    /// The obvious matcher, which takes exponential time.
    fn naive(atoms: &[(Atom, bool)], line: &[char], at_end: bool) -> bool {
        let Some(((atom, many), rest)) = atoms.split_first() else {
            return !at_end || line.is_empty();
        };
        let one = line.first().is_some_and(|c| *atom == Atom::Any || *atom == Atom::Char(*c));
        if *many {
            naive(rest, line, at_end) || (one && naive(atoms, &line[1..], at_end))
        } else {
            one && naive(rest, &line[1..], at_end)
        }
    }

    proptest::proptest! {
        #[test]
        fn agrees_with_the_obvious_matcher(
            pattern in "\\^?[ab.*|]{0,6}\\$?",
            line in "[ab]{0,8}",
        ) {
            let p = Pattern::new(&pattern, false).unwrap();
            let chars: Vec<char> = line.chars().collect();
            let want = p.alternatives.iter().any(|a| {
                let starts = if a.at_start { 0..=0 } else { 0..=chars.len() };
                starts.into_iter().any(|i| naive(&a.atoms, &chars[i..], a.at_end))
            });
            proptest::prop_assert_eq!(p.matches(&line), want);
        }
    }
}
