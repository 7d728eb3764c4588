//! A router within the test's process.

use crate::setters::PRELUDE;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;
use tempfile::TempDir;
use thalweg_buffer::PoolConfig;
use thalweg_cli::{CliError, CommandTree};
use thalweg_config::declare::{Document, diff};
use thalweg_feat_config::manager;
use thalweg_graph::{Control, EngineConfig};
use thalweg_program_router::features::FEATURES;

/// One at a time: each is a router.
pub static ONE: Mutex<()> = Mutex::new(());

pub struct Router {
    pub c: Control,
    pub tree: CommandTree<Control>,
    pub dir: TempDir,
}

impl Router {
    pub fn start() -> Router {
        if std::env::var_os("THALWEG_LOG").is_some() {
            let _ = tracing_subscriber::fmt().with_writer(std::io::stderr).try_init();
        }
        let pool = PoolConfig { buffers: 512, ..Default::default() };
        let mut c = Control::new(EngineConfig { pool, ..Default::default() }).unwrap();
        thalweg_engine::start(&mut c, FEATURES).unwrap();
        let tree = thalweg_engine::command_tree(&c).unwrap();
        Router { c, tree, dir: tempfile::tempdir().unwrap() }
    }

    /// A router with what the examples need.
    pub fn prepared() -> Router {
        let mut router = Router::start();
        router.run(PRELUDE);
        router
    }

    /// Runs lines, if there are any; what they print, and the error, if one fails.
    fn type_in(&mut self, lines: &str) -> (String, Result<(), CliError>) {
        if lines.is_empty() {
            return (String::new(), Ok(()));
        }
        let (text, end) = self.tree.run_line(&mut self.c, lines);
        self.c.finish_late();
        (text, end.map(|_| ()))
    }

    /// Runs lines; the error, if one fails.
    pub fn attempt(&mut self, lines: &str) -> Result<String, CliError> {
        let (text, end) = self.type_in(lines);
        end.map(|()| text)
    }

    /// Lets what is due be done.
    pub fn settle(&mut self) {
        for _ in 0..4 {
            self.c.run_once(Some(Duration::ZERO));
        }
    }

    pub fn run(&mut self, lines: &str) -> String {
        let (text, end) = self.type_in(lines);
        end.unwrap_or_else(|e| panic!("{lines}\n{text}{e}"));
        text
    }

    pub fn dump(&self) -> Document {
        manager::running(&self.c).unwrap_or_else(|e| panic!("{e}"))
    }

    pub fn become_(&mut self, document: &Document) -> String {
        let file = self.dir.path().join("a.yaml");
        std::fs::write(&file, document.to_yaml().unwrap()).unwrap();
        self.apply(&file)
    }

    pub fn apply(&mut self, file: &Path) -> String {
        self.run(&format!("config apply {}", file.display()))
    }

    pub fn show(&mut self) -> String {
        let text = self.run("show interface\nshow interface address\nshow hardware-interfaces");
        let sflow = self.run("show sflow");
        // Datagrams sent since depend on the time.
        let (settings, _status) = sflow.split_once("Status").expect("show sflow has a status");
        text + &self.run("show ip fib") + settings
    }

    /// Stops this one, and starts another in its place.
    pub fn restart(&mut self) {
        std::mem::replace(self, Router::start()).stop();
    }

    pub fn stop(mut self) {
        assert_eq!(self.c.shut_down().in_use, 0);
    }
}

pub fn same(a: &Document, b: &Document, what: &str) {
    let all: Vec<String> = diff(a.root(), b.root()).iter().map(ToString::to_string).collect();
    assert!(all.is_empty(), "{what}:\n{}", all.join("\n"));
}
