//! Examples in pages for operators are right: blocks run, commands in tables can be parsed, and
//! documents are valid.

#![allow(clippy::expect_used, clippy::panic)]

use thalweg_device::testing::Lab;

/// Interfaces of the examples, and those of the lab; files, and where the test may write.
const NAMES: [(&str, &str); 6] = [
    ("host-lan", "test0"),
    ("host-eth0", "test0"),
    ("host-wan", "test1"),
    ("host-eth1", "test1"),
    ("host-tenant", "test2"),
    ("host-eth2", "test2"),
];
const FOLDERS: [&str; 3] = ["/var/lib/thalweg", "/var/log", "/run/thalweg"];

/// A router, and a folder for its files.
struct Router(Lab, tempfile::TempDir);

impl Router {
    fn new() -> Router {
        let mut lab = Lab::of_all(thalweg_program_router::features::FEATURES).start();
        lab.ok("set interface ip address test0 10.0.0.1/24
            set interface ip address test1 203.0.113.1/24");
        let dir = tempfile::tempdir().expect("a folder");
        std::fs::write(dir.path().join("rules.txt"), "priority=0,actions=drop\n").expect("a file");
        Router(lab, dir)
    }

    /// Runs a command of a page; its output, and whether it succeeded.
    fn run(&mut self, line: &str) -> (String, bool) {
        let mut line = line.to_owned();
        for (from, to) in NAMES {
            line = line.replace(from, to);
        }
        let folder = self.1.path().to_str().expect("text");
        for from in FOLDERS {
            line = line.replace(from, folder);
        }
        line = line.replace("rules.txt", &format!("{folder}/rules.txt"));
        let text = self.0.run(&line, None, |_| {});
        // An error begins with the command's path.
        let head = text.split(": ").next().unwrap_or_default();
        let failed = text.contains(": ") && !head.is_empty() && line.starts_with(head);
        (text, !failed)
    }
}

/// Blocks of indented lines, without remarks.
fn blocks(page: &str) -> Vec<Vec<&str>> {
    let mut blocks = vec![Vec::new()];
    let mut fenced = false;
    for line in page.lines() {
        fenced ^= line.starts_with("```");
        match line.strip_prefix("    ").filter(|_| !fenced) {
            Some(text) => {
                blocks.last_mut().expect("one").push(text.split(" #").next().unwrap_or(text))
            }
            None => blocks.push(Vec::new()),
        }
    }
    blocks.retain(|b| !b.is_empty());
    blocks
}

/// Whole commands in tables: spans of code that begin with one of `words`, without placeholders.
fn in_tables<'p>(page: &'p str, words: &[&str]) -> Vec<&'p str> {
    let rows = page.lines().filter(|l| l.starts_with("| "));
    let spans = rows.flat_map(|l| l.split('`').skip(1).step_by(2));
    let is_one =
        |s: &&str| words.iter().any(|w| s.starts_with(w)) && !s.contains(['<', '…', '|', '{']);
    spans.filter(is_one).collect()
}

fn check(page: &str, words: &[&str], least: usize) {
    let mut n = 0;
    for block in blocks(page) {
        let mut router = Router::new();
        for line in block {
            let (text, done) = router.run(line);
            assert!(done, "{line}\n{text}");
            n += 1;
        }
        router.0.c.shut_down();
    }
    let mut router = Router::new();
    for line in in_tables(page, words) {
        // The command may lack an object that it needs, but it is a command.
        let (text, _) = router.run(line);
        let wrong = ["expected ", "unknown input", "ambiguous input", "unexpected "];
        let bare = text.contains(": missing ");
        assert!(bare || !wrong.iter().any(|w| text.contains(w)), "{line}\n{text}");
        n += 1;
    }
    router.0.c.shut_down();
    assert!(n >= least, "{n} commands");
}

#[test]
fn nat44() {
    let words = ["nat44 ", "nat ", "set nat", "show nat", "clear nat44"];
    // A machine with the service has this directory.
    let dir = tempfile::tempdir().unwrap();
    let own = dir.path().display().to_string();
    let page = include_str!("../../../../docs/nat44.md").replace("/var/lib/thalweg", &own);
    check(&page, &words, 60);
}

#[test]
fn mpls() {
    check(include_str!("../../../../docs/mpls.md"), &["mpls ", "show mpls"], 30);
}

#[test]
fn flow_rules() {
    let words = ["flow ", "set conntrack ", "show conntrack", "clear conntrack"];
    check(include_str!("../../../../docs/flow-rules.md"), &words, 40);
}

#[test]
fn configuration() {
    let page = include_str!("../../../../docs/configuration.md");
    let (_, document) = page.split_once("```yaml\n").expect("a document");
    let (document, _) = document.split_once("```").expect("its end");
    let catalog = thalweg_program_router::configuration::catalog().expect("a catalog");
    let n = catalog.read("lab.yaml", document).expect("a valid document").items().len();
    assert!(n >= 10, "{n}");
    let Err(error) = catalog.read("lab.yaml", "interfaces:\n  host-eth0:\n    mut: 1500\n") else {
        panic!("an unknown key was accepted");
    };
    assert!(page.contains(error.to_string().trim()), "{error}");
}
