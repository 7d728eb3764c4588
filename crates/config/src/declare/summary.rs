//! Long lists as text: their first lines, and how many there are of each kind of setting.

use super::diff::Difference;
use super::part::Part;
use super::plan::{Plan, Step};
use super::rules::Grammar;
use std::collections::HashMap;
use std::fmt::{self, Write as _};

/// Length up to which a list is shown as a whole.
pub const WHOLE: usize = 100;
/// Entries of a longer one that are shown.
const FIRST: usize = 5;
/// Kinds of settings that are named.
const NAMED: usize = 8;

/// Kinds of settings, by the paths of a document in which names are `*`.
#[derive(Clone, Copy)]
pub struct Kinds<'a>(pub(crate) &'a Grammar);

impl Kinds<'_> {
    /// A plan: all of it for `exec` if it is short or `all` is true. Otherwise comments alone, as
    /// half of a plan must not be run.
    pub fn plan(self, plan: &Plan, all: bool) -> String {
        if all || plan.steps.len() <= WHOLE {
            return plan.to_string();
        }
        let mut text = String::new();
        for steps in plan.steps.chunk_by(|a, b| a.phase == b.phase) {
            let Some(Step { phase, .. }) = steps.first() else { continue };
            let kinds = self.counted(steps.iter().map(|step| step.path.as_str()));
            let _ =
                writeln!(text, "comment {{ {}: {} commands: {kinds}", phase.word(), steps.len());
            for step in steps.iter().take(FIRST) {
                let _ = writeln!(text, "  {}", step.command);
            }
            text += &more(steps.len(), "  ");
            text += "}\n";
        }
        text
    }

    /// Differences of two documents.
    pub fn differences(self, list: &[Difference], all: bool) -> String {
        self.list(list, all, |d| d.path.split_once(": - ").map_or(&*d.path, |(list, _)| list))
    }

    /// Parts of a document that are not in force.
    pub fn parts(self, list: &[&Part], all: bool) -> String {
        let paths: Vec<String> = list.iter().map(|part| part.path()).collect();
        let list: Vec<(&Part, &str)> =
            list.iter().copied().zip(paths.iter().map(String::as_str)).collect();
        let line =
            |(part, path): &(&Part, &str)| format!("{path}: {}: {}", part.state.word(), part.why);
        self.list_by(&list, all, line, |(_, path)| path)
    }

    fn list<T: fmt::Display>(self, list: &[T], all: bool, path: impl Fn(&T) -> &str) -> String {
        self.list_by(list, all, ToString::to_string, path)
    }

    fn list_by<T>(
        self,
        list: &[T],
        all: bool,
        line: impl Fn(&T) -> String,
        path: impl Fn(&T) -> &str,
    ) -> String {
        let is_whole = all || list.len() <= WHOLE;
        let shown = if is_whole { list.len() } else { FIRST };
        let mut text = String::new();
        for one in &list[..shown] {
            text += &line(one);
            text.push('\n');
        }
        if !is_whole {
            let kinds = self.counted(list.iter().map(path));
            text += &more(list.len(), "");
            let _ =
                writeln!(text, "{} in all: {kinds}; `verbose' or `| json' has them", list.len());
        }
        text
    }

    /// Counts each kind, the most frequent first.
    fn counted<'p>(self, paths: impl Iterator<Item = &'p str>) -> String {
        let mut kinds: HashMap<String, usize> = HashMap::new();
        for path in paths {
            *kinds.entry(self.0.kind_of(path)).or_default() += 1;
        }
        let mut kinds: Vec<(String, usize)> = kinds.into_iter().collect();
        kinds.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let others: usize = kinds.iter().skip(NAMED).map(|(_, n)| n).sum();
        let named = kinds.iter().take(NAMED).map(|(kind, n)| format!("{n} of {kind}"));
        let others = (others > 0).then(|| format!("{others} of others"));
        named.chain(others).collect::<Vec<_>>().join(", ")
    }
}

fn more(of: usize, indent: &str) -> String {
    match of.saturating_sub(FIRST) {
        0 => String::new(),
        n => format!("{indent}... and {n} more\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Catalog, Item, Kind, Name, Node, Problem, Rule, plan, rank};
    use super::*;

    const RULES: &[Rule] = &[
        Rule::new("thalweg.tables", Kind::Named(Name::Any)),
        Rule::new("thalweg.tables.*", Kind::Keys),
        Rule::new("thalweg.tables.*.routes", Kind::Named(Name::Any)),
        Rule::new("thalweg.tables.*.routes.*", Kind::Text(99)),
    ];

    fn catalog() -> Catalog<()> {
        let mut catalog = Catalog::new(Vec::new()).unwrap();
        catalog.extend(RULES);
        catalog
    }

    #[test]
    fn names_are_no_kinds() {
        let catalog = catalog();
        for (path, kind) in [
            ("interfaces.host-eth0.mtu", "interfaces.*.mtu"),
            ("interfaces.host-eth0.100.addresses", "interfaces.*.addresses"),
            ("interfaces.mtu.mtu", "interfaces.*.mtu"),
            ("interfaces.host-eth0", "interfaces.*"),
            ("interfaces.host-eth0.addresses[1]", "interfaces.*.addresses"),
            ("thalweg.tables.7.routes.10.0.0.0/24", "thalweg.tables.*.routes.*"),
            ("thalweg.tables.7.routes.10.0.0.0/24[3]", "thalweg.tables.*.routes.*"),
            ("sflow.polling-interval", "sflow.polling-interval"),
            ("sflow.unknown", "sflow"),
            ("nonsense", "others"),
            ("", "others"),
        ] {
            assert_eq!(catalog.kinds().0.kind_of(path), kind, "{path}");
        }
    }

    #[test]
    fn long_lists_are_counted_and_short_ones_shown() {
        let catalog = catalog();
        let route = |n: usize| {
            let path = format!("thalweg.tables.0.routes.10.0.{n}.0/24");
            Item::new(rank::ROUTE, format!("route {n}"), path, format!("ip route add {n}"))
        };
        let port = |n: usize| {
            let path = format!("interfaces.pg{n}");
            Item::new(rank::CREATE, format!("port {n}"), path, format!("create {n}"))
        };
        let items = |n: usize| -> Vec<Item> { (0..n).map(route).chain((0..3).map(port)).collect() };
        let short = plan(&[], &items(WHOLE - 3));
        assert_eq!(catalog.kinds().plan(&short, false), short.to_string());
        let long = plan(&[], &items(WHOLE));
        assert_eq!(catalog.kinds().plan(&long, true), long.to_string());
        assert_eq!(
            catalog.kinds().plan(&long, false),
            "comment { create: 3 commands: 3 of interfaces.*\n  create 0\n  create 1\n  create 2\n}\n\
             comment { sync: 100 commands: 100 of thalweg.tables.*.routes.*\n  ip route add 0\n  \
             ip route add 1\n  ip route add 2\n  ip route add 3\n  ip route add 4\n  ... and 95 \
             more\n}\n"
        );
    }

    #[test]
    fn lists_say_how_to_see_all() {
        let catalog = catalog();
        let line = |n: usize| Difference {
            path: format!("interfaces.pg{n}.addresses: - 10.0.0.{n}/24"),
            old: None,
            new: Some(String::new()),
        };
        let all: Vec<Difference> = (0..=WHOLE).map(line).collect();
        let text = catalog.kinds().differences(&all, false);
        assert_eq!(text.lines().count(), FIRST + 2, "{text}");
        assert!(text.ends_with(
            "... and 96 more\n101 in all: 101 of interfaces.*.addresses; `verbose' or `| json' \
             has them\n"
        ));
        assert_eq!(catalog.kinds().differences(&all, true).lines().count(), WHOLE + 1);
        let mut root = Node::default();
        root.put(&["interfaces", "pg0", "mtu"], 7u32);
        let wrong = Problem::new("interfaces.pg0.mtu", "wrong");
        let part = Part::copy(&root, &wrong.path, wrong.message).unwrap();
        assert_eq!(catalog.kinds().parts(&[&part], false), "interfaces.pg0.mtu: failed: wrong\n");
    }
}
