//! Fields of headers.

use thalweg_load::stream::{Field, Steps, Values};

use crate::tree::{At, Out};
use crate::words::Kind;

/// Reads a field: a value, a range, or a map that says how it varies.
pub(crate) fn field(at: &At<'_>, kind: Kind) -> Out<Field> {
    if !at.is_map() {
        let word = at.word()?;
        return match kind.range(&word) {
            Some((low, high)) if low == high => Ok(Field::one(low)),
            Some((low, high)) => Ok(Field::count(low, high)),
            None => at.expected(&format!("{}, or a range of them", kind.name())),
        };
    }
    at.keys(&[
        "inc", "dec", "random", "list", "step", "start", "seed", "distinct", "with", "after",
    ])?;
    let range = |at: &At<'_>| match kind.range(&at.word()?) {
        Some((low, high)) if low <= high => Ok((low, high)),
        Some((low, high)) => {
            let (low, high) = (kind.write(low), kind.write(high));
            at.wrong(format!("`{low}-{high}' runs backwards; use {high}-{low}"))
        }
        None => at.expected(&format!("a range of the form low-high, each {}", kind.name())),
    };
    let value = |at: &At<'_>| match kind.read(&at.word()?) {
        Some(value) => Ok(value),
        None => at.expected(kind.name()),
    };
    let only = |keys: &[&str], what: &str| {
        for key in keys {
            if let Some(at) = at.get(key) {
                return at.wrong(format!("`{key}' does not go with `{what}'"));
            }
        }
        Ok(())
    };
    let ways = ["inc", "dec", "random", "list"];
    let given: Vec<&str> = ways.into_iter().filter(|way| at.get(way).is_some()).collect();
    let values = match given[..] {
        [way @ ("inc" | "dec")] => {
            only(&["seed", "distinct"], way)?;
            let (low, high) = range(&at.need(way, "a range")?)?;
            let (first, last) = if way == "inc" { (low, high) } else { (high, low) };
            let step = at.get("step").map_or(Ok(1), |at| at.whole(1, u64::MAX))?.into();
            let start = at.get("start").map_or(Ok(first), |at| value(&at))?;
            Values::Count { first, last, step, start }
        }
        ["random"] => {
            only(&["step", "start"], "random")?;
            let (least, most) = range(&at.need("random", "a range")?)?;
            let seed = at.get("seed").map_or(Ok(0), |at| at.whole(0, u64::MAX))?;
            let distinct = at.get("distinct").map(|at| at.whole(1, 65_536)).transpose()?;
            Values::Random { least, most, seed, distinct: distinct.map(|n| n as u32) }
        }
        ["list"] => {
            only(&["step", "start", "seed", "distinct"], "list")?;
            let list = at.need("list", "values")?.list()?;
            Values::List(list.iter().map(value).collect::<Out<_>>()?)
        }
        _ => return at.wrong("one of inc, dec, random and list must say how the field varies"),
    };
    let steps = match (at.get("with"), at.get("after")) {
        (None, None) => Steps::Packet,
        (Some(with), None) => Steps::With(with.word()?),
        (None, Some(after)) => Steps::After(after.word()?),
        (Some(_), Some(after)) => return after.wrong("`after' does not go with `with'"),
    };
    Ok(Field { values, steps })
}

/// Reads a pair `[source, destination]` of fields.
pub(crate) fn pair(at: &At<'_>, kind: Kind) -> Out<(Field, Field)> {
    match &at.list()?[..] {
        [source, destination] => Ok((field(source, kind)?, field(destination, kind)?)),
        _ => at.wrong("two values are needed: [source, destination]"),
    }
}
