//! Two reports next to each other.

use std::fmt;

use crate::markdown::{plain, write_table};
use crate::model::{Kind, Report};
use crate::tables::{Table, names};
use crate::words::{difference, rate, share};

/// A fact in which two reports differ, so that their numbers say nothing about each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Differs {
    /// The fact.
    pub what: &'static str,
    /// Value in the first report.
    pub before: String,
    /// Value in the second report.
    pub after: String,
}

impl fmt::Display for Differs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} in one, {} in the other", self.what, self.before, self.after)
    }
}

/// A result in both reports.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The goal.
    pub goal: String,
    /// Unit.
    pub unit: String,
    /// First report: the rate, and whether the tester was the limit.
    pub before: (f64, bool),
    /// Second report.
    pub after: (f64, bool),
    /// Interval of 95 % of the second by the first, if both have searched several times.
    pub ratio95: Option<[f64; 2]>,
    /// Bottlenecks of the device, before and after.
    pub limited_by: (String, String),
}

impl Difference {
    /// The numbers in words.
    pub fn verdict(&self) -> &'static str {
        match (self.ratio95, self.before.1, self.after.1) {
            (_, true, true) => "the tester was the limit of both",
            (_, true, false) => "at most so much: the tester was the limit before",
            (_, false, true) => "at least so much: the tester is the limit now",
            (None, ..) => "one measurement each: no interval",
            (Some([least, most]), ..) if least <= 1.0 && most >= 1.0 => "no difference seen",
            (Some([least, _]), ..) if least > 1.0 => "faster",
            _ => "slower",
        }
    }
}

/// Two reports next to each other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Comparison {
    /// Results by goal.
    pub results: Vec<Difference>,
    /// Warnings.
    pub notes: Vec<String>,
}

/// Compares two reports. `anyway`: even if they differ in what makes comparing them meaningless;
/// then these facts are notes of the result.
///
/// # Errors
/// The facts in which they differ.
pub fn compare(before: &Report, after: &Report, anyway: bool) -> Result<Comparison, Vec<Differs>> {
    let differs = differing(before, after);
    if !differs.is_empty() && !anyway {
        return Err(differs);
    }
    let mut notes: Vec<String> =
        differs.iter().map(|fact| format!("Not comparable: {fact}.")).collect();
    for (name, report) in [("first", before), ("second", after)] {
        if report.machine.noisy {
            notes.push(format!("The machine was busy with other things in the {name} report."));
        }
    }
    if let (Kind::Run, Some(old), Some(new)) =
        (before.kind, before.trials.last(), after.trials.last())
    {
        let [old, new] = [old, new].map(|trial| share(trial.loss_ratio));
        notes.push(format!("Lost in the window: {old} before, {new} after."));
    }
    let mut results = Vec::new();
    for old in &before.results {
        let Some(new) =
            after.results.iter().find(|new| (&new.goal, &new.unit) == (&old.goal, &old.unit))
        else {
            notes.push(format!("The second report has no {} in {}.", old.goal, old.unit));
            continue;
        };
        let by = |found: &crate::Found| {
            found.limited_by.as_ref().map_or("–".to_owned(), |by| {
                let parts = [&by.row, &by.node, &by.reason];
                let parts: Vec<&str> =
                    parts.into_iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
                parts.join(", ")
            })
        };
        let value = |found: &crate::Found| found.median.or(found.lower).unwrap_or(0.0);
        results.push(Difference {
            goal: old.goal.clone(),
            unit: old.unit.clone(),
            before: (value(old), old.tester_limit),
            after: (value(new), new.tester_limit),
            ratio95: ratio(old.interval95, new.interval95),
            limited_by: (by(old), by(new)),
        });
    }
    Ok(Comparison { results, notes })
}

/// Interval of a ratio from those of both numbers: it holds at least as often as they do.
fn ratio(before: Option<[f64; 2]>, after: Option<[f64; 2]>) -> Option<[f64; 2]> {
    let ([least, most], [low, high]) = (before?, after?);
    (least > 0.0 && most > 0.0).then(|| [low / most, high / least])
}

/// Facts that must be the same.
fn differing(before: &Report, after: &Report) -> Vec<Differs> {
    let goals = |report: &Report| {
        let goal = |goal: &crate::Goal| {
            let crate::Goal { name, loss_ratio, trial_s, sum_s, exceed, width } = goal;
            format!("{name} (loss {loss_ratio}, {trial_s} s of {sum_s} s, {exceed}, {width})")
        };
        report.goals.iter().map(goal).collect::<Vec<_>>().join(", ")
    };
    let machine =
        |report: &Report| format!("{}, {} cores", report.machine.cpu, report.machine.cores);
    let facts: [(&'static str, String, String); 5] = [
        ("kind", format!("{:?}", before.kind), format!("{:?}", after.kind)),
        ("profile", profile(before), profile(after)),
        ("transport", before.transport.kind.clone(), after.transport.kind.clone()),
        ("machine", machine(before), machine(after)),
        ("goals", goals(before), goals(after)),
    ];
    let differ = facts.into_iter().filter(|(_, before, after)| before != after);
    differ.map(|(what, before, after)| Differs { what, before, after }).collect()
}

fn profile(report: &Report) -> String {
    format!("{} ({})", report.profile.name, report.profile.fingerprint)
}

impl Comparison {
    pub(crate) fn table(&self) -> Table {
        let value = |(rate_of, tester): (f64, bool)| {
            let sign = if tester { "≥ " } else { "" };
            format!("{sign}{}", rate(rate_of))
        };
        let row = |result: &Difference| {
            let interval = result.ratio95.map_or("–".to_owned(), |[least, most]| {
                format!("{} to {}", difference(1.0, least), difference(1.0, most))
            });
            vec![
                format!("{} {}", result.goal, result.unit),
                value(result.before),
                value(result.after),
                difference(result.before.0, result.after.0),
                interval,
                result.verdict().to_owned(),
                result.limited_by.0.clone(),
                result.limited_by.1.clone(),
            ]
        };
        Table {
            key: "comparison",
            title: "Results of both".into(),
            note: "The interval of the difference holds with at least 90 %.".into(),
            columns: names(&[
                "",
                "before",
                "after",
                "difference",
                "interval",
                "verdict",
                "limited by, before",
                "limited by, after",
            ]),
            rows: self.results.iter().map(row).collect(),
        }
    }

    /// The comparison as Markdown.
    pub fn markdown(&self) -> String {
        let mut out = String::from("# Comparison of load tests\n");
        for note in &self.notes {
            out += &format!("\n**{}**\n", plain(note));
        }
        write_table(&mut out, &self.table());
        out
    }
}
