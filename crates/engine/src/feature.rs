//! A feature's contributions: the binary lists features, one line each.

use crate::setting::Declared;
use std::time::Instant;
use thalweg_api::Service;
use thalweg_cli::{Command, CommandTree, DuplicatePath, Unfinished};
use thalweg_config::declare::Section;
use thalweg_graph::{ArcDecl, Control, EngineError, NodeDecl, Part};

/// A feature, a device driver or the engine itself.
pub struct Feature {
    /// Name that `show plugins` prints.
    pub name: &'static str,
    /// One-line description.
    pub about: &'static str,
    /// Features whose state it uses; they are listed before it.
    pub needs: &'static [&'static Feature],
    /// Its nodes.
    pub nodes: &'static [&'static NodeDecl],
    /// Arcs that it defines for others.
    pub arcs: &'static [&'static ArcDecl],
    /// Its commands.
    pub commands: &'static [&'static dyn Command<Control>],
    /// Its binary API messages.
    pub api: &'static [&'static dyn Service<Control>],
    /// Its sections of the declarative configuration. One section dumps each command's setting.
    pub settings: &'static [&'static dyn Section<Control>],
    /// Settings that are described once: their commands and sections follow.
    pub declared: &'static [&'static dyn Declared],
    /// Inserts its state, before nodes are built.
    pub init: fn(&mut Control),
    /// Runs once the graph is built and workers run.
    pub ready: fn(&mut Control),
    /// Runs before workers end: saves what would be lost, until the time given.
    pub end: fn(&mut Control, Instant),
}

impl Feature {
    /// Defaults, for `..Feature::DEFAULT`.
    pub const DEFAULT: Feature = Feature {
        name: "",
        about: "",
        needs: &[],
        nodes: &[],
        arcs: &[],
        commands: &[],
        api: &[],
        settings: &[],
        declared: &[],
        init: |_| {},
        ready: |_| {},
        end: |_, _| {},
    };

    /// Returns its commands, those of declared settings last.
    pub fn all_commands(&self) -> impl Iterator<Item = &'static dyn Command<Control>> {
        let declared = self.declared.iter().filter_map(|setting| setting.command());
        self.commands.iter().copied().chain(declared)
    }

    /// Returns its sections of documents, those of declared settings last.
    pub fn sections(&self) -> impl Iterator<Item = &'static dyn Section<Control>> {
        let declared = self.declared.iter().map(|setting| *setting as &dyn Section<Control>);
        self.settings.iter().copied().chain(declared)
    }

    /// Returns its contribution to the graph.
    pub const fn part(&self) -> Part {
        Part {
            name: self.name,
            nodes: self.nodes,
            arcs: self.arcs,
            init: self.init,
            ready: self.ready,
        }
    }
}

/// All features that run.
struct Running(Vec<&'static Feature>);

/// Builds the graph of the engine and of all features, and starts the workers.
///
/// # Errors
/// [`EngineError::Graph`] describes what is inconsistent; nothing runs then.
pub fn start(c: &mut Control, features: &[&'static Feature]) -> Result<(), EngineError> {
    check_needs(features).map_err(EngineError::Graph)?;
    let all: Vec<_> = [&crate::ENGINE].into_iter().chain(features.iter().copied()).collect();
    let parts: Vec<Part> = all.iter().map(|f| f.part()).collect();
    c.insert(Running(all));
    c.start(&parts)
}

/// Lists features and all that they need: each once, and after those that it needs.
pub fn with_needs(features: &[&'static Feature]) -> Vec<&'static Feature> {
    fn add(feature: &'static Feature, all: &mut Vec<&'static Feature>) {
        if all.iter().all(|f| f.name != feature.name) {
            feature.needs.iter().for_each(|need| add(need, all));
            all.push(feature);
        }
    }
    let mut all = Vec::new();
    features.iter().for_each(|feature| add(feature, &mut all));
    all
}

/// Checks that each feature comes after those that it needs.
fn check_needs(features: &[&Feature]) -> Result<(), String> {
    let place = |name: &str| features.iter().position(|f| f.name == name);
    for (i, feature) in features.iter().enumerate() {
        for need in feature.needs {
            let fault = match place(need.name) {
                Some(at) if at < i => continue,
                Some(_) => "is listed after it",
                None => "is not listed",
            };
            let (name, need) = (feature.name, need.name);
            return Err(format!("feature `{name}` needs `{need}`, which {fault}"));
        }
    }
    Ok(())
}

/// Returns all features, the engine first.
pub fn features(c: &Control) -> Vec<&'static Feature> {
    c.state::<Running>().borrow().0.clone()
}

/// Lets all features save what would be lost, before workers end.
pub fn end(c: &mut Control, until: Instant) {
    features(c).iter().for_each(|feature| (feature.end)(c, until));
}

/// Returns the commands of all features.
pub fn commands(c: &Control) -> Vec<&'static dyn Command<Control>> {
    features(c).into_iter().flat_map(Feature::all_commands).collect()
}

/// Builds the command line of all features. A command ends when what it began is done, even if
/// a worker is late: what it set is in force then.
///
/// # Errors
/// If two commands have the same path.
pub fn command_tree(c: &Control) -> Result<CommandTree<Control>, DuplicatePath> {
    let unfinished = Unfinished { begun: Control::begun_late, go_on: Control::go_on };
    CommandTree::new(commands(c)).map(|tree| tree.finishing(unfinished))
}

#[cfg(test)]
mod tests {
    use super::*;

    static BASE: Feature = Feature { name: "base", ..Feature::DEFAULT };
    static SIDE: Feature = Feature { name: "side", ..Feature::DEFAULT };
    static TOP: Feature = Feature { name: "top", needs: &[&SIDE, &USER], ..Feature::DEFAULT };
    static USER: Feature = Feature { name: "user", needs: &[&BASE], ..Feature::DEFAULT };

    #[test]
    fn a_wrong_order_is_refused_by_name() {
        assert_eq!(check_needs(&[&BASE, &USER]), Ok(()));
        let late = "feature `user` needs `base`, which is listed after it";
        assert_eq!(check_needs(&[&USER, &BASE]), Err(late.into()));
        let missing = "feature `user` needs `base`, which is not listed";
        assert_eq!(check_needs(&[&USER]), Err(missing.into()));
    }

    #[test]
    fn needs_come_once_and_first() {
        let all = with_needs(&[&USER, &TOP, &BASE]);
        assert_eq!(all.iter().map(|f| f.name).collect::<Vec<_>>(), ["base", "user", "side", "top"]);
        assert_eq!(check_needs(&all), Ok(()));
    }
}
