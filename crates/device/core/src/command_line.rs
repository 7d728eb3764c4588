//! CLI arguments shared by the interface commands of this crate and of features.

use crate::interface::{self, DeviceError, Interfaces, SwIfIndex, TagKind, TagMatch, VlanTag};
use std::cmp::Ordering;
use thalweg_cli::{Args, CliError};
use thalweg_graph::Control;
use thalweg_wire::vlan::{MAX_ID, VlanId};

/// Maximum number of names in an error message.
const LISTED: usize = 8;

/// Takes an interface by name, device or tag ([`Interfaces::resolve`]), or else by index.
///
/// # Errors
/// If the interface does not exist; the message lists similar names.
pub fn interface_arg(c: &Control, args: &mut Args<'_>) -> Result<SwIfIndex, CliError> {
    let word = args.word("interface")?;
    let found = named(c, word);
    found.ok_or_else(|| args.bad_last("interface", expected(word, &interface_names(c))))
}

/// Takes an interface if the next word names one, at no cost otherwise: nothing is made for an
/// error that nobody reads.
pub fn interface_maybe(c: &Control, args: &mut Args<'_>) -> Option<SwIfIndex> {
    args.maybe(|args| {
        let word = args.word("interface")?;
        named(c, word).ok_or_else(|| args.bad_last("interface", "an interface"))
    })
}

fn named(c: &Control, word: &str) -> Option<SwIfIndex> {
    let all = c.state::<Interfaces>();
    let all = all.borrow();
    let by_index = || word.parse().ok().filter(|i| all.get(*i).is_some());
    all.resolve(word).or_else(by_index)
}

/// Takes an interface where one of `words` could stand, too, but does not; `what` names the place.
///
/// # Errors
/// If the interface does not exist; the message lists the words, and those similar to what is
/// there.
pub fn interface_or(
    c: &Control,
    args: &mut Args<'_>,
    what: &str,
    words: &[&str],
) -> Result<SwIfIndex, CliError> {
    match (interface_maybe(c, args), args.peek()) {
        (Some(sw_if), _) => Ok(sw_if),
        (None, Some(word)) if !args.at_address() => {
            Err(args.bad(what, expected_or(word, &interface_names(c), words)))
        }
        (None, _) => Err(args.bad(what, expected_or("", &interface_names(c), words))),
    }
}

/// Names of all interfaces, in natural order.
pub fn interface_names(c: &Control) -> Vec<String> {
    let all = c.state::<Interfaces>();
    let mut names: Vec<String> = all.borrow().iter().map(|i| i.name.clone()).collect();
    names.sort_by(|a, b| natural(a, b));
    names
}

/// Interfaces in natural order of their names.
pub(crate) fn sorted(c: &Control) -> Vec<SwIfIndex> {
    let names = interface_names(c);
    names.iter().filter_map(|n| interface::find(c, n).ok()).collect()
}

/// A sub-interface's encapsulation as the command line and documents write it.
pub(crate) const ENCAPSULATION: &str = "default|untagged|{dot1q|dot1ad} {<vlan>|any} \
                                        [inner-dot1q {<vlan>|any}] [exact-match]";

/// Takes a sub-interface's encapsulation; `None` if there is no word left.
///
/// # Errors
/// If a word is not part of one, or the combination means nothing.
pub(crate) fn tag_match(args: &mut Args<'_>) -> Result<Option<TagMatch>, CliError> {
    fn id(args: &mut Args<'_>) -> Result<Option<VlanId>, CliError> {
        if args.exact("any") {
            return Ok(None);
        }
        args.number("VLAN id", 1, u64::from(MAX_ID.0)).map(|id| Some(VlanId(id as u16)))
    }
    if args.is_empty() {
        return Ok(None);
    }
    let kind = match args.choice("encapsulation", &["default", "untagged", "dot1q", "dot1ad"])? {
        "default" => return args.end().map(|()| Some(TagMatch::Default)),
        "untagged" => return args.end().map(|()| Some(TagMatch::Untagged)),
        "dot1q" => TagKind::Dot1q,
        _ => TagKind::Dot1ad,
    };
    let outer = id(args)?.map(|id| VlanTag { kind, id });
    let inner = if args.keyword("inner-dot1q") { Some(id(args)?) } else { None };
    let exact = args.keyword("exact-match");
    args.end()?;
    let inexact = |what: &str| format!("not exact-match: {what} stands for no tags to send");
    Ok(Some(match (outer, inner) {
        (None, None) if exact => return Err(args.bad_last("encapsulation", inexact("any"))),
        (None, None) => TagMatch::AnyOuter(kind),
        (None, Some(_)) => {
            let right = "an outer VLAN id where there is an inner one";
            return Err(args.bad_last("encapsulation", right));
        }
        (Some(tag), None) => TagMatch::Outer { tag, exact },
        (Some(_), Some(None)) if exact => {
            return Err(args.bad_last("encapsulation", inexact("inner-dot1q any")));
        }
        (Some(outer), Some(None)) => TagMatch::AnyInner(outer),
        (Some(outer), Some(Some(id))) => {
            TagMatch::Pair { outer, inner: VlanTag { kind: TagKind::Dot1q, id }, exact }
        }
    }))
}

/// Converts a device error to a command's error with its return code.
pub fn refused(e: DeviceError) -> CliError {
    let code = e.code();
    CliError::with_code(e, code)
}

fn expected(word: &str, names: &[String]) -> String {
    let near: Vec<&str> = names.iter().filter(|n| close(word, n)).map(String::as_str).collect();
    let (list, lead) = match near.is_empty() {
        true => (names.iter().map(String::as_str).collect(), ""),
        false => (near, "did you mean "),
    };
    let more = if list.len() > LISTED { ", …" } else { "" };
    let shown = list[..list.len().min(LISTED)].join(", ");
    match lead {
        "" => format!("an interface ({shown}{more})"),
        lead => format!("an interface ({lead}{shown}{more}?)"),
    }
}

fn expected_or(word: &str, names: &[String], words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|w| format!("`{w}'")).collect();
    let near: Vec<&str> = words.iter().copied().filter(|w| close(word, w)).collect();
    let interface = expected(word, names);
    match near.is_empty() {
        true => format!("{interface}, or {}", quoted.join(", ")),
        false => {
            format!("an interface, or {} (did you mean {}?)", quoted.join(", "), near.join(", "))
        }
    }
}

/// Returns whether one begins with the other, or they differ by a typing error.
fn close(word: &str, name: &str) -> bool {
    let (a, b) = (word.as_bytes(), name.as_bytes());
    if a.is_empty() || a.len() > 64 {
        return false;
    }
    name.starts_with(word) || word.starts_with(name) || (a.len() > 2 && distance(a, b) <= 2)
}

/// Edit distance.
fn distance(a: &[u8], b: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let change = corner + usize::from(x != y);
            corner = row[j + 1];
            row[j + 1] = change.min(corner + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

/// Compares names so that `pg2` precedes `pg10`.
fn natural(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a, b);
    loop {
        let digits = |s: &str| s.bytes().take_while(u8::is_ascii_digit).count();
        let (n, m) = (digits(a), digits(b));
        if n > 0 && m > 0 {
            let (x, y) = (a[..n].trim_start_matches('0'), b[..m].trim_start_matches('0'));
            let order = x.len().cmp(&y.len()).then_with(|| x.cmp(y)).then(n.cmp(&m));
            if order != Ordering::Equal {
                return order;
            }
            (a, b) = (&a[n..], &b[m..]);
            continue;
        }
        let (mut x, mut y) = (a.chars(), b.chars());
        match (x.next(), y.next()) {
            (None, None) => return Ordering::Equal,
            (p, q) if p != q => return p.cmp(&q),
            _ => (a, b) = (x.as_str(), y.as_str()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_sort_naturally() {
        let mut names = ["pg10", "pg2", "host-a.10", "host-a", "host-a.9", "loop0", "pg02"];
        names.sort_by(|a, b| natural(a, b));
        assert_eq!(names, ["host-a", "host-a.9", "host-a.10", "loop0", "pg2", "pg02", "pg10"]);
    }

    #[test]
    fn close_names_are_offered() {
        let names = ["local0", "pg0", "pg1", "host-eth0"].map(String::from);
        assert_eq!(expected("host-eht0", &names), "an interface (did you mean host-eth0?)");
        assert_eq!(expected("pg7", &names), "an interface (did you mean pg0, pg1?)");
        assert_eq!(expected("zebra", &names), "an interface (local0, pg0, pg1, host-eth0)");
    }

    #[test]
    fn words_are_offered_where_they_may_stand() {
        let names = ["pg0", "pg1"].map(String::from);
        let text = |word| expected_or(word, &names, &["weight", "via"]);
        let all = "`weight', `via'";
        assert_eq!(text("wieght"), format!("an interface, or {all} (did you mean weight?)"));
        assert_eq!(text("pg"), format!("an interface (did you mean pg0, pg1?), or {all}"));
        assert_eq!(text("zebra"), format!("an interface (pg0, pg1), or {all}"));
    }

    proptest::proptest! {
        #[test]
        fn the_order_is_one(a in "[a0-9é]{0,6}", b in "[a0-9é]{0,6}", c in "[a0-9é]{0,6}") {
            assert_eq!(natural(&a, &b), natural(&b, &a).reverse());
            if natural(&a, &b).is_le() && natural(&b, &c).is_le() {
                assert!(natural(&a, &c).is_le());
            }
            close(&a, &b);
        }
    }
}
