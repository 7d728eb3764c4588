//! Pools of addresses.

use std::collections::BTreeMap;

use thalweg_config::closest;

use crate::tree::{At, Out};
use crate::words::Kind;

/// Addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Addresses {
    pub(crate) v6: bool,
    /// Ranges; together not more than a list may have, if there are several.
    pub(crate) values: Vec<(u128, u128)>,
    pub(crate) random: bool,
}

/// Most addresses of a pool that is no single range.
const MAX_LIST: u128 = 65_536;

/// Pools by name.
#[derive(Debug, Default)]
pub(crate) struct Pools(BTreeMap<String, Addresses>);

impl Pools {
    /// Reads the document's pools.
    pub(crate) fn read(at: &At<'_>) -> Out<Pools> {
        let entries = at.entries()?;
        let read = |(name, at): &(&str, At<'_>)| Ok(((*name).to_owned(), pool(at)?));
        Ok(Pools(entries.iter().map(read).collect::<Out<_>>()?))
    }

    /// A pool by its name, or written where it stands.
    pub(crate) fn find(&self, at: &At<'_>) -> Out<Addresses> {
        if at.is_map() || at.is_list() {
            return pool(at);
        }
        let word = at.word()?;
        if let Some(pool) = self.0.get(&word) {
            return Ok(pool.clone());
        }
        if word.contains(['.', ':']) {
            return pool(at);
        }
        let names: Vec<&str> = self.0.keys().map(String::as_str).collect();
        let meant = match closest(&word, &names) {
            Some(meant) => format!("did you mean `{meant}'?"),
            None if names.is_empty() => "the document has no `pools'".into(),
            None => format!("pools: {}", names.join(", ")),
        };
        at.wrong(format!("no pool `{word}'; {meant}"))
    }
}

fn pool(at: &At<'_>) -> Out<Addresses> {
    if !at.is_map() {
        return addresses(at, None, false);
    }
    at.keys(&["v4", "v6", "pick"])?;
    let picks = [("next", false), ("random", true), ("per-worker", false)];
    let random = at.get("pick").map_or(Ok(false), |at| at.one_of(&picks))?;
    match (at.get("v4"), at.get("v6")) {
        (Some(v4), None) => addresses(&v4, Some(Kind::V4), random),
        (None, Some(v6)) => addresses(&v6, Some(Kind::V6), random),
        _ => at.wrong("one of `v4' and `v6' is needed"),
    }
}

fn addresses(at: &At<'_>, kind: Option<Kind>, random: bool) -> Out<Addresses> {
    let parts = if at.is_list() { at.list()? } else { vec![at.clone()] };
    let mut kind = kind;
    let mut values = Vec::new();
    for part in &parts {
        let word = part.word()?;
        let own = kind.unwrap_or(if word.contains(':') { Kind::V6 } else { Kind::V4 });
        kind = Some(own);
        match own.range(&word) {
            Some((low, high)) if low <= high => values.push((low, high)),
            Some((low, high)) => {
                let (low, high) = (own.write(low), own.write(high));
                return part.wrong(format!("`{low}-{high}' runs backwards; use {high}-{low}"));
            }
            None => {
                return part.expected(&format!(
                    "{}, a range of them (first-last) or a prefix",
                    own.name()
                ));
            }
        }
    }
    if values.is_empty() {
        return at.wrong("an empty list; a pool has at least one address");
    }
    let count = values.iter().fold(0u128, |all, (low, high)| all.saturating_add(high - low));
    if values.len() > 1 && count.saturating_add(values.len() as u128) > MAX_LIST {
        return at.wrong(format!("a list of more than {MAX_LIST} addresses; use one range"));
    }
    Ok(Addresses { v6: kind == Some(Kind::V6), values, random })
}
