//! Routes that are typed into the kernel, and whether the router forwards by these.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use thalweg_testkit::Netns;

/// Destinations that are compared, by version: those of `kernel.txt`.
const COMPARED: [(&str, &str, &str); 2] =
    [("-4", "ip", "203.0.113.0/24"), ("-6", "ip6", "2001:db8:aa::/48")];
/// Tables of the kernel that are compared, and the router's.
const TABLES: [(&str, u32); 3] = [("main", 0), ("5", 5), ("77", 77)];

/// Next hops of the destinations of tables, or a special kind.
type Ways = BTreeMap<(u32, String), BTreeSet<String>>;

/// Types words to `ip` in a namespace; most of it may be refused.
pub(super) fn say(ns: &Netns, words: &str) {
    let _ = ns.ip(words);
}

/// Takes back all that was typed.
pub(super) fn forget(ns: &Netns) {
    for (version, _, all) in COMPARED {
        let _ = ns.ip(&format!("{version} route flush table all root {all}"));
    }
    let _ = ns.ip("nexthop flush");
}

/// Compares once; `ask` is answered by the router, with an error for a table that is not there.
///
/// # Errors
/// The first difference.
pub(super) fn compare(
    ns: &Netns,
    ask: &mut dyn FnMut(&str) -> Result<Option<Value>>,
) -> Result<()> {
    let pairs = ask("show lcp | json")?.context("`show lcp' is refused")?;
    let pairs: BTreeMap<String, String> = pairs["pairs"]
        .as_array()
        .context("no pairs")?
        .iter()
        .filter(|pair| pair["away"] != true)
        .filter_map(|pair| Some((pair["name"].as_str()?.into(), pair["phy"].as_str()?.into())))
        .collect();
    for (version, word, all) in COMPARED {
        let text = ns.ip(&format!("-json {version} route show table all root {all}"))?;
        let kernel = if pairs.is_empty() { Ways::new() } else { of_kernel(&text, &pairs)? };
        let mut ours = Ways::new();
        for (_, table) in TABLES {
            if let Some(answer) = ask(&format!("show {word} fib table {table} all | json"))? {
                of_router(&answer, table, &mut ours)?;
            }
        }
        let places: BTreeSet<_> = kernel.keys().chain(ours.keys()).collect();
        for place in places {
            let (theirs, ours) = (kernel.get(place), ours.get(place));
            let agrees = match (theirs, ours) {
                // A way that cannot be used now is none of the router's.
                (Some(theirs), Some(ours)) => ours.is_subset(theirs),
                _ => false,
            };
            ensure!(
                agrees,
                "{} in table {}: the kernel has {theirs:?}, the router {ours:?}",
                place.1,
                place.0
            );
        }
    }
    Ok(())
}

/// Reads what `ip -json route` prints: of each destination the route with the lowest metric, which
/// is listed first, without hops by other links than twins. Without any, the router has none.
fn of_kernel(text: &str, pairs: &BTreeMap<String, String>) -> Result<Ways> {
    let routes: Vec<Value> = match text.trim() {
        "" => Vec::new(),
        text => serde_json::from_str(text).context("what `ip route' prints")?,
    };
    let (mut all, mut seen) = (Ways::new(), BTreeSet::new());
    for route in &routes {
        let table = route["table"].as_str().unwrap_or("main");
        let Some((_, table)) = TABLES.iter().find(|(name, _)| *name == table) else { continue };
        let to = route["dst"].as_str().context("a destination")?;
        let width = if to.contains(':') { 128 } else { 32 };
        let to = if to.contains('/') { to.to_owned() } else { format!("{to}/{width}") };
        let hops = match route["nexthops"].as_array() {
            Some(hops) => hops.iter().collect(),
            None => vec![route],
        };
        let kind = route["type"].as_str().unwrap_or("unicast");
        let is_dead = |hop: &&Value| has_flag(hop, "dead");
        if kind == "unicast" && hops.iter().all(is_dead) || !seen.insert((*table, to.clone())) {
            continue;
        }
        let ways: BTreeSet<String> = match kind {
            "unicast" => {
                let live = hops.iter().filter(|hop| !is_dead(hop));
                live.filter_map(|hop| way(hop, pairs)).collect()
            }
            "blackhole" => BTreeSet::from(["drop".into()]),
            other => BTreeSet::from([other.to_owned()]),
        };
        if !ways.is_empty() {
            all.insert((*table, to), ways);
        }
    }
    Ok(all)
}

fn has_flag(hop: &Value, flag: &str) -> bool {
    hop["flags"].as_array().is_some_and(|flags| flags.iter().any(|of| of == flag))
}

/// A hop by a twin; a next-hop object that drops has none.
fn way(hop: &Value, pairs: &BTreeMap<String, String>) -> Option<String> {
    let interface = pairs.get(hop["dev"].as_str()?)?;
    let gateway = hop["gateway"].as_str().or_else(|| hop["via"]["host"].as_str());
    Some(format!("{} {interface}", gateway.unwrap_or("link")))
}

/// Reads what `show ip fib` answers: the routes of the kernel by which the router forwards.
fn of_router(answer: &Value, table: u32, all: &mut Ways) -> Result<()> {
    let parts = answer.as_array().context("a list")?;
    for route in parts.iter().flat_map(|part| part["routes"].as_array().into_iter().flatten()) {
        if !route["source"].as_str().is_some_and(|source| source.starts_with("lcp-rt")) {
            continue;
        }
        let to = route["prefix"].as_str().context("a prefix")?.to_owned();
        let mut ways = BTreeSet::new();
        match route["paths"][0]["kind"].as_str() {
            Some(kind @ ("drop" | "unreachable" | "prohibit")) => _ = ways.insert(kind.to_owned()),
            _ => ends(&route["forwarding"], &mut ways),
        }
        all.insert((table, to), ways);
    }
    Ok(())
}

fn ends(members: &Value, into: &mut BTreeSet<String>) {
    for member in members.as_array().into_iter().flatten() {
        match (&member["members"], member["interface"].as_str()) {
            (Value::Null, Some(interface)) => {
                let by = member["via"].as_str().unwrap_or("link");
                into.insert(format!("{by} {interface}"));
            }
            (Value::Null, None) => {}
            (inner, _) => ends(inner, into),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn hops_by_other_links_and_dead_ones_are_left_out() {
        let pairs = [("t0", "pg0"), ("t1", "pg1")].map(|(a, b)| (a.into(), b.into())).into();
        let text = r#"[
            {"dst":"203.0.113.0/24","gateway":"10.0.0.2","dev":"t0","metric":10,"flags":["dead"]},
            {"dst":"203.0.113.0/24","gateway":"10.0.1.2","dev":"t1","metric":30,"flags":[]},
            {"dst":"203.0.113.7","gateway":"10.0.1.2","dev":"e0","flags":[]},
            {"dst":"203.0.113.7","gateway":"10.0.1.2","dev":"t1","metric":9,"flags":[]},
            {"type":"blackhole","dst":"203.0.113.8/30","table":"77"},
            {"dst":"203.0.113.64/26","nexthops":[
                {"gateway":"10.0.0.2","dev":"t0","flags":[]},
                {"gateway":"10.0.1.2","dev":"e0","flags":[]}]},
            {"dst":"203.0.113.64/26","dev":"t0","table":"local"}]"#;
        let all = of_kernel(text, &pairs).unwrap();
        let of = |table, to: &str| {
            let ways = all.get(&(table, to.to_owned()))?;
            Some(ways.iter().cloned().collect::<Vec<_>>().join(", "))
        };
        assert_eq!(of(0, "203.0.113.0/24").as_deref(), Some("10.0.1.2 pg1"));
        assert_eq!(of(0, "203.0.113.7/32"), None);
        assert_eq!(of(77, "203.0.113.8/30").as_deref(), Some("drop"));
        assert_eq!(of(0, "203.0.113.64/26").as_deref(), Some("10.0.0.2 pg0"));
        assert_eq!(of_kernel("", &pairs).unwrap(), Ways::new());
    }

    #[test]
    fn routes_of_others_are_not_compared() {
        let member = json!({ "kind": "ip4-rewrite", "via": "10.0.0.2", "interface": "pg0" });
        let answer = json!([{ "routes": [
            { "prefix": "10.0.0.0/24", "source": "interface", "paths": [], "forwarding": [] },
            { "prefix": "203.0.113.0/24", "source": "lcp-rt", "paths": [{ "kind": "group" }],
              "forwarding": [{ "members": [member, { "kind": "drop" }] }] },
        ] }]);
        let mut all = Ways::new();
        of_router(&answer, 5, &mut all).unwrap();
        let wanted = BTreeSet::from(["10.0.0.2 pg0".to_owned()]);
        assert_eq!(all, Ways::from([((5, "203.0.113.0/24".to_owned()), wanted)]));
    }
}
