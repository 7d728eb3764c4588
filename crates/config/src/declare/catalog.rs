//! The catalog of all sections: checks documents, dumps them and turns them into items.

use super::item::{Draft, Item, named_interface, no_interface};
use super::node::Node;
use super::part::{Part, take_out};
use super::plan::{Plan, plan};
use super::report::{Problem, Problems};
use super::rules::{Grammar, Kind, Name, Rule};
use super::schema;
use super::section::{Doc, Dump, Later, OURS, Section, Slices, Subs, Unsaid, Walk};
use super::summary::Kinds;
use super::yaml;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

/// A bug in the program: a section supports a path that the schema does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no rule for `{0}'")]
pub struct NoRule(pub &'static str);

/// A document and its items.
#[derive(Clone, Debug, Default)]
pub struct Document {
    root: Node,
    items: Vec<Item>,
    /// Settings of a running configuration that are so by default.
    unsaid: Vec<Unsaid>,
    /// Parts that no section reads.
    unread: Vec<Part>,
}

impl Document {
    /// A document that is as it should be.
    pub(crate) fn of(root: Node, items: Vec<Item>) -> Document {
        Document { root, items, ..Document::default() }
    }

    /// Returns the tree.
    pub fn root(&self) -> &Node {
        &self.root
    }

    /// Returns the items that the document asks for.
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// Returns the parts of a running configuration that would not be read back. Empty unless a
    /// command takes what its section refuses, which is a bug in the program.
    pub fn unread(&self) -> &[Part] {
        &self.unread
    }

    /// Formats the document as YAML.
    ///
    /// # Errors
    /// If it contains a value that YAML cannot represent.
    pub fn to_yaml(&self) -> Result<String, Problem> {
        yaml::write(&self.root)
    }

    /// Plans the steps from this document's configuration to another's.
    pub fn plan_to(&self, other: &Document) -> Plan {
        plan(&self.items, &other.items)
    }

    /// Adds a description below a path of keys, if there is something at that path.
    pub fn note(&mut self, path: &[String], text: &str) {
        let mut keys: Vec<&str> = path.iter().map(String::as_str).collect();
        if self.root.at(&keys).is_some() {
            keys.push("description");
            self.root.put(&keys, text);
        }
    }

    /// Returns all descriptions, with the path of what they describe.
    pub fn notes(&self) -> Vec<(Vec<String>, String)> {
        let mut notes = Vec::new();
        collect_notes(&self.root, &mut Vec::new(), &mut notes);
        notes
    }
}

/// Parses a text with mistakes, to say where they are.
fn parse(name: &str, text: &str) -> Result<Node, Problems> {
    yaml::parse(text).map_err(|problem| Problems { name: name.to_owned(), list: vec![problem] })
}

/// A problem at a path of a document.
fn problem_at(root: &Node, path: &str, text: String) -> Problem {
    let place = Part::copy(root, path, "").and_then(|part| part.node().place);
    Problem { place, ..Problem::new(path, text) }
}

/// Returns whether a document describes an interface. The router's own exists without.
fn is_there(doc: &Doc<'_>, name: &str) -> bool {
    name == "local0" || doc.interface(name).is_some()
}

fn collect_notes(node: &Node, path: &mut Vec<String>, notes: &mut Vec<(Vec<String>, String)>) {
    for (key, below) in node.entries() {
        match below.text() {
            Some(text) if key == "description" => notes.push((path.clone(), text.to_owned())),
            _ => {
                path.push(key.to_owned());
                collect_notes(below, path, notes);
                path.pop();
            }
        }
    }
}

/// The catalog of sections and of the rules for documents.
pub struct Catalog<C: 'static> {
    sections: Vec<&'static dyn Section<C>>,
    grammar: Arc<Grammar>,
}

impl<C> Catalog<C> {
    /// Creates a catalog of sections.
    ///
    /// # Errors
    /// If one supports a path that the schema does not have.
    pub fn new(sections: Vec<&'static dyn Section<C>>) -> Result<Catalog<C>, NoRule> {
        let mut grammar = Grammar::new(schema::RULES);
        for rule in [
            Rule::new(OURS, Kind::Keys),
            Rule::new("thalweg.interfaces", Kind::Named(Name::Any)),
            Rule::new("thalweg.interfaces.*", Kind::Keys),
        ] {
            grammar.add(rule);
        }
        let ours: Vec<Rule> = sections.iter().flat_map(|s| s.rules()).collect();
        ours.iter().for_each(|rule| grammar.add(*rule));
        let theirs: Vec<&'static str> = sections.iter().flat_map(|s| s.supports()).collect();
        for path in theirs.iter().copied().chain(ours.iter().map(|rule| rule.path)) {
            grammar.support(path).map_err(NoRule)?;
        }
        // Sub-interfaces support the keys of interfaces, too, if a feature has sub-interfaces.
        if theirs.iter().any(|path| path.starts_with("interfaces.*.sub-interfaces.*")) {
            for key in theirs.iter().filter_map(|path| path.strip_prefix("interfaces.*.")) {
                grammar.support_if_known(&format!("interfaces.*.sub-interfaces.*.{key}"));
            }
        }
        Ok(Catalog { sections, grammar: Arc::new(grammar) })
    }

    /// Kinds of settings that documents have, to count them by.
    pub fn kinds(&self) -> Kinds<'_> {
        Kinds(&self.grammar)
    }

    #[cfg(test)]
    pub(crate) fn extend(&mut self, rules: &[Rule]) {
        let grammar = Arc::get_mut(&mut self.grammar).unwrap();
        rules.iter().for_each(|rule| grammar.add(*rule));
    }

    /// Reads a text and checks that its settings are known, valid and supported.
    ///
    /// # Errors
    /// All problems found in it.
    pub fn read(&self, name: &str, text: &str) -> Result<Document, Problems> {
        let read = yaml::parse_bare(text).ok().and_then(|root| self.check(name, root).ok());
        read.map_or_else(|| self.check(name, parse(name, text)?), Ok)
    }

    /// Like [`Catalog::read`], from a tree.
    ///
    /// # Errors
    /// All problems found in it.
    pub fn check(&self, name: &str, root: Node) -> Result<Document, Problems> {
        let problems = self.grammar.check(&root);
        // Parts of the wrong kind cannot be checked further; unsupported ones can.
        if problems.iter().any(|p| !p.unsupported) {
            return Problems::check(name, problems).map(|()| Document::default());
        }
        let (items, more) = self.items(&root, false);
        Problems::check(name, [problems, more].concat())?;
        Ok(Document::of(root, items))
    }

    /// Reads what is valid of a text, and returns the parts that are not.
    ///
    /// # Errors
    /// If it is no YAML document with keys at all.
    pub fn load(&self, name: &str, text: &str) -> Result<(Document, Vec<Part>), Problems> {
        self.load_as(name, text, false)
    }

    /// Like [`Catalog::load`], of a text that the router has written.
    ///
    /// # Errors
    /// As [`Catalog::load`].
    pub fn load_saved(&self, name: &str, text: &str) -> Result<(Document, Vec<Part>), Problems> {
        self.load_as(name, text, true)
    }

    fn load_as(
        &self,
        name: &str,
        text: &str,
        saved: bool,
    ) -> Result<(Document, Vec<Part>), Problems> {
        let read = yaml::parse_bare(text).ok().and_then(|root| {
            self.valid_parts(name, root, saved).ok().filter(|(_, wrong)| wrong.is_empty())
        });
        read.map_or_else(|| self.valid_parts(name, parse(name, text)?, saved), Ok)
    }

    /// Like [`Catalog::load`], from a tree.
    ///
    /// # Errors
    /// As [`Catalog::load`].
    pub fn salvage(&self, name: &str, root: Node) -> Result<(Document, Vec<Part>), Problems> {
        self.valid_parts(name, root, false)
    }

    fn valid_parts(
        &self,
        name: &str,
        mut root: Node,
        saved: bool,
    ) -> Result<(Document, Vec<Part>), Problems> {
        let mut parts = Vec::new();
        loop {
            let mut problems = self.grammar.check(&root);
            let mut items = Vec::new();
            if problems.is_empty() {
                (items, problems) = self.items(&root, saved);
            }
            if problems.is_empty() {
                return Ok((Document::of(root, items), parts));
            }
            // Each round takes something out. References to that are wrong in the next one.
            let out = take_out(&mut root, &problems);
            if out.is_empty() {
                return Problems::check(name, problems).map(|()| Default::default());
            }
            parts.extend(out);
        }
    }

    /// Adds parts to a document, except for what is set there by now.
    #[must_use]
    pub fn with_parts(&self, document: Document, parts: &[Part]) -> Document {
        let mut root = document.root;
        if parts.iter().filter(|part| part.add_to(&mut root)).count() == 0 {
            return Document { root, ..document };
        }
        // Parts that are added may change what the document means by default, such as indices.
        if !document.unsaid.is_empty() && !self.is_so_by_default(&root, &document.unsaid) {
            for Unsaid { path, value, .. } in &document.unsaid {
                let path: Vec<&str> = path.iter().map(String::as_str).collect();
                root.put(&path, value.clone());
            }
        }
        let implicit = document.items.into_iter().filter(|i| i.implicit).collect();
        self.as_it_is(root, implicit, document.unsaid)
    }

    /// Returns true if a document need not have a setting, as its value is the default.
    fn is_so_by_default(&self, root: &Node, unsaid: &[Unsaid]) -> bool {
        let read = self.valid_parts("", root.clone(), true);
        let items = read.map(|(document, _)| document.items).unwrap_or_default();
        let by_key: HashMap<&str, &str> =
            items.iter().filter(|i| i.implicit).map(|i| (&*i.key, &*i.set)).collect();
        unsaid.iter().all(|u| by_key.get(&*u.item.key) == Some(&&*u.item.set))
    }

    /// A document of all that is there, with the items of what is valid.
    fn as_it_is(&self, root: Node, implicit: Vec<Item>, unsaid: Vec<Unsaid>) -> Document {
        let problems = self.grammar.check(&root);
        let (items, more) = match problems.is_empty() {
            true => self.items(&root, false),
            false => (Vec::new(), problems),
        };
        let (mut items, unread) = match more.is_empty() {
            true => (items, Vec::new()),
            false => match self.salvage("", root.clone()) {
                Ok((rest, parts)) => (rest.items, parts),
                Err(_) => (items, Vec::new()),
            },
        };
        let stated: HashSet<String> =
            items.iter().filter(|i| i.with.is_some()).map(|i| i.key.clone()).collect();
        items.extend(implicit.into_iter().filter(|i| !stated.contains(&i.key)));
        Document { root, items, unsaid, unread }
    }

    fn items(&self, root: &Node, saved: bool) -> (Vec<Item>, Vec<Problem>) {
        let doc = Doc::new(root).saved(saved);
        let mut draft = Draft::default();
        for section in &self.sections {
            section.items(&doc, &mut draft);
        }
        for interface in doc.interfaces() {
            if !draft.claimed.contains(&*interface.name) {
                let node = interface.node().cloned().unwrap_or_default();
                draft.problems.push(Problem::unsupported(&node, interface.path(""), KINDS));
            }
        }
        draft.unread.retain(|(kind, _)| !draft.read.contains(kind));
        draft.problems.extend(draft.unread.drain(..).map(|(_, problem)| problem));
        let mut seen: HashMap<&str, &str> = HashMap::with_capacity(draft.items.len());
        for item in &draft.items {
            if let Some(first) = seen.insert(&item.key, &item.path) {
                let text = format!("`{}' is configured twice, here and at {first}", item.key);
                draft.problems.push(problem_at(root, &item.path, text));
            }
        }
        // A command would take an index or a tag as well, and the setting be another than written.
        for item in draft.items.iter().filter(|item| !item.may_wait) {
            let unknown = |key: &&String| {
                let name = named_interface(key).filter(|name| !is_there(&doc, name));
                name.filter(|_| !seen.contains_key(key.as_str())).is_some()
            };
            for key in item.needs.iter().filter(unknown) {
                let name = named_interface(key).unwrap_or_default();
                let wrong = problem_at(root, &item.path, no_interface(name));
                draft.problems.push(wrong.absent(key));
            }
        }
        (draft.items, draft.problems)
    }

    /// Returns what was in force and went away outside the router.
    pub fn missing(&self, cx: &C) -> Vec<Part> {
        self.sections.iter().flat_map(|section| section.missing(cx)).collect()
    }

    /// Dumps the running configuration at once: for small configurations, and for tests.
    pub fn dump(&self, cx: &C) -> Document {
        let mut collected = self.collect();
        while !collected.go_on(cx) {}
        self.write_out(collected)
    }

    /// Starts to collect the running configuration.
    pub fn collect(&self) -> Collected<C> {
        Collected {
            grammar: self.grammar.clone(),
            sections: self.sections.iter().copied().collect(),
            slices: None,
            written: Written::default(),
            walks: VecDeque::new(),
            laters: Vec::new(),
            pieces: 0,
        }
    }

    /// Writes the collected configuration as a document. Does not need the router any more: for
    /// another thread, as it takes a second for some ten thousand routes.
    pub fn write_out(&self, collected: Collected<C>) -> Document {
        let Collected { mut written, laters, .. } = collected;
        written.with(&self.grammar, |out| laters.into_iter().for_each(|later| later(out)));
        let Written { root, implicit, .. } = written;
        let items = implicit.iter().map(|unsaid| unsaid.item.clone()).collect();
        self.as_it_is(root, items, implicit)
    }
}

/// The part of a document that sections have written so far.
#[derive(Default)]
struct Written {
    root: Node,
    implicit: Vec<Unsaid>,
    subs: Subs,
    hidden: HashSet<String>,
}

impl Written {
    /// Writes more.
    fn with<R>(&mut self, grammar: &Grammar, write: impl FnOnce(&mut Dump<'_>) -> R) -> R {
        let Written { root, implicit, subs, hidden } = std::mem::take(self);
        let mut dump = Dump { root, grammar, implicit, subs, hidden };
        let result = write(&mut dump);
        let Dump { root, implicit, subs, hidden, .. } = dump;
        *self = Written { root, implicit, subs, hidden };
        result
    }
}

/// The running configuration while it is collected.
pub struct Collected<C: 'static> {
    grammar: Arc<Grammar>,
    /// Sections that have not begun.
    sections: VecDeque<&'static dyn Section<C>>,
    /// The section that still writes.
    slices: Option<Slices<C>>,
    written: Written,
    /// Remaining walks, which follow the sections.
    walks: VecDeque<Walk<C>>,
    laters: Vec<Later>,
    pieces: usize,
}

impl<C> Collected<C> {
    /// Collects another piece: a section, or some hundred parts of one at most. Returns true when
    /// all is collected.
    pub fn go_on(&mut self, cx: &C) -> bool {
        let (grammar, written) = (&self.grammar, &mut self.written);
        if let Some(slices) = &mut self.slices {
            self.pieces += 1;
            if written.with(grammar, |out| slices(cx, out)) {
                self.slices = None;
            }
        } else if let Some(section) = self.sections.pop_front() {
            self.slices = section.slices(cx);
            if self.slices.is_none() {
                written.with(grammar, |out| section.dump(cx, out));
            }
            self.walks.extend(section.walk(cx));
        } else if let Some(walk) = self.walks.front_mut() {
            self.pieces += 1;
            if let Some(later) = walk(cx) {
                self.laters.push(later);
                self.walks.pop_front();
            }
        }
        self.slices.is_none() && self.sections.is_empty() && self.walks.is_empty()
    }

    /// Returns the number of pieces of sections that may be large, so far.
    pub fn pieces(&self) -> usize {
        self.pieces
    }
}

/// Names of the interfaces that are supported.
const KINDS: &str = "interfaces are host-<device>, pg<n>, sink<n>, loop<n> and local0";
