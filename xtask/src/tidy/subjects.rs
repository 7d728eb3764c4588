//! Subjects of commits are `crate: imperative summary`, in at most 60 columns.

use std::path::Path;

use anyhow::Result;

use super::git;

/// Commits up to this one are as they are.
const SINCE: &str = "8aace73a154b2e129dac64a45cb313af8c9322dd";
const WIDTH: usize = 60;

pub fn check(root: &Path) -> Result<Vec<String>> {
    let range = format!("{SINCE}..HEAD");
    if git(root, &["cat-file", "-e", SINCE]).is_err() {
        println!("tidy: this clone has no history before the rule, so all its commits are checked");
        return Ok(findings(&git(root, &["log", "--no-merges", "--format=%h %s"])?));
    }
    Ok(findings(&git(root, &["log", "--no-merges", "--format=%h %s", &range])?))
}

fn findings(log: &str) -> Vec<String> {
    let commits = log.lines().filter_map(|line| line.split_once(' '));
    commits
        .filter_map(|(hash, subject)| {
            Some(format!("commit {hash}: {}: {subject}", fault(subject)?))
        })
        .collect()
}

/// Faults of a commit's subject.
fn fault(subject: &str) -> Option<String> {
    let width = subject.chars().count();
    if width > WIDTH {
        return Some(format!("{width} columns; {WIDTH} at most"));
    }
    let Some((place, summary)) = subject.split_once(": ") else {
        return Some("not `crate: imperative summary`".into());
    };
    let places = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_/, ".contains(c);
    if place.is_empty() || !place.chars().all(places) {
        return Some(format!("`{place}` is not the name of a crate, a feature or a folder"));
    }
    let verb = summary.split_whitespace().next().unwrap_or_default().to_lowercase();
    let begins_otherwise = ["a", "an", "the", "it", "what", "who", "whoever", "no", "one", "each"];
    let not_imperative = verb.ends_with("ing") && verb != "bring"
        || verb.ends_with("ed") && !["feed", "need", "seed", "shed", "embed"].contains(&&*verb)
        || verb.ends_with('\'')
        || verb.ends_with("'s")
        || begins_otherwise.contains(&&*verb);
    if not_imperative || summary.ends_with('.') {
        return Some("the summary is an imperative, without a full stop".into());
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_follow_the_rule() {
        for good in [
            "wire: add VLAN views",
            "feat/nat44, flow: share one list of protocols",
            "docs: rewrite the user guide by task",
            "af-packet: embed the program",
        ] {
            assert_eq!(fault(good), None, "{good}");
        }
        for bad in [
            "Fix things",
            "sflow: what a sample needs is asked for when it is due",
            "build: functions begin with a line of the cache, each with one of its own",
            "graph: added a node",
            "graph: adding a node",
            "Review: add a node",
            "graph: add a node.",
        ] {
            assert!(fault(bad).is_some(), "{bad}");
        }
    }

    #[test]
    fn a_finding_names_the_commit() {
        let found = findings("abc1234 wire: add views\ndef5678 stuff\n");
        assert_eq!(found, ["commit def5678: not `crate: imperative summary`: stuff"]);
    }
}
