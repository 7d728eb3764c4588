//! Routes of the kernel next to those of the router, read apart from how the router follows them.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use thalweg_testkit::{Netns, WAIT_LIMIT, wait_until_seen};

use crate::Router;

/// Destinations, with the next hops of each as text.
pub type Ways = BTreeMap<String, BTreeSet<String>>;

/// Differences that an error lists.
const LISTED: usize = 10;

/// Waits until the router forwards by the routes of the main table of `ns`, and by no others that
/// it has from there; returns their number. The interface of a twin `X` is `host-X`.
///
/// # Errors
/// If it does not, with what differs.
pub fn wait_for_same_routes(ns: &Netns, router: &Router) -> Result<usize> {
    wait_until_seen(WAIT_LIMIT, "the router to have the kernel's routes", || {
        same_routes(ns, router).map_err(|e| format!("{e:#}"))
    })
}

/// Compares once.
///
/// # Errors
/// If something differs.
pub fn same_routes(ns: &Netns, router: &Router) -> Result<usize> {
    let mut count = 0;
    for (word, version) in [("ip", "-4"), ("ip6", "-6")] {
        let kernel = of_kernel(&ns.ip(&format!("-json {version} route show table main"))?)?;
        let ours = of_router(&router.json(&format!("show {word} fib table 0 all"))?)?;
        let differences = differences(&kernel, &ours);
        ensure!(
            differences.is_empty(),
            "{} routes of {version} in the kernel, {} in the router; {} differ: {:#?}",
            kernel.len(),
            ours.len(),
            differences.len(),
            &differences[..differences.len().min(LISTED)]
        );
        count += kernel.len();
    }
    Ok(count)
}

fn differences(kernel: &Ways, ours: &Ways) -> Vec<String> {
    let all: BTreeSet<&String> = kernel.keys().chain(ours.keys()).collect();
    let differ = all.into_iter().filter(|to| kernel.get(*to) != ours.get(*to));
    differ
        .map(|to| format!("{to}: kernel {:?}, router {:?}", kernel.get(to), ours.get(to)))
        .collect()
}

/// Reads what `ip -json route` prints: of each destination the route with the lowest metric, which
/// is listed first.
fn of_kernel(text: &str) -> Result<Ways> {
    let routes: Vec<Value> = serde_json::from_str(text).context("what `ip route' prints")?;
    let mut all = Ways::new();
    // Destinations of the kernel's own addresses. The interfaces have the same.
    let is_own = |route: &&Value| route["protocol"] == "kernel";
    let own: BTreeSet<_> = routes.iter().filter(is_own).map(|r| r["dst"].to_string()).collect();
    for route in routes.iter().filter(|route| !own.contains(&route["dst"].to_string())) {
        let text = |key: &str| route[key].as_str();
        let width = if text("dst").is_some_and(|to| to.contains(':')) { 128 } else { 32 };
        let to = match text("dst").context("a destination")? {
            "default" if routes_are_v6(&routes) => "::/0".to_owned(),
            "default" => "0.0.0.0/0".to_owned(),
            to if to.contains('/') => to.to_owned(),
            to => format!("{to}/{width}"),
        };
        let ways = match (text("type"), route["nexthops"].as_array()) {
            (Some("blackhole"), _) => BTreeSet::from(["drop".to_owned()]),
            (Some(special @ ("unreachable" | "prohibit")), _) => BTreeSet::from([special.into()]),
            (_, Some(hops)) => hops.iter().map(hop).collect(),
            (_, None) => BTreeSet::from([hop(route)]),
        };
        all.entry(to).or_insert(ways);
    }
    Ok(all)
}

/// A default route says nothing about its version.
fn routes_are_v6(routes: &[Value]) -> bool {
    let of_v6 = |route: &Value| {
        let other = route["dst"].as_str().is_some_and(|to| to.contains(':'));
        other || route["gateway"].as_str().is_some_and(|by| by.contains(':'))
    };
    routes.iter().any(of_v6)
}

fn hop(of: &Value) -> String {
    let gateway = of["gateway"].as_str().or_else(|| of["via"]["host"].as_str());
    format!("{} host-{}", gateway.unwrap_or("link"), of["dev"].as_str().unwrap_or_default())
}

/// Reads what `show ip fib` answers: routes by which the router forwards because the kernel has
/// them.
fn of_router(answer: &Value) -> Result<Ways> {
    let parts = answer.as_array().context("a list")?;
    let mut all = Ways::new();
    for route in parts.iter().flat_map(|part| part["routes"].as_array().into_iter().flatten()) {
        if !route["source"].as_str().is_some_and(|source| source.starts_with("lcp-rt")) {
            continue;
        }
        let to = route["prefix"].as_str().context("a prefix")?.to_owned();
        let kind = &route["paths"][0]["kind"];
        let mut ways = BTreeSet::new();
        match kind.as_str() {
            Some(kind @ ("drop" | "unreachable" | "prohibit")) => _ = ways.insert(kind.to_owned()),
            _ => ends(&route["forwarding"], &mut ways),
        }
        all.insert(to, ways);
    }
    Ok(all)
}

fn ends(members: &Value, into: &mut BTreeSet<String>) {
    for member in members.as_array().into_iter().flatten() {
        match (&member["members"], member["interface"].as_str()) {
            (Value::Null, Some(interface)) => {
                let by = member["via"].as_str().unwrap_or("link");
                into.insert(format!("{by} {interface}"));
            }
            (Value::Null, None) => _ = into.insert(member["kind"].to_string()),
            (inner, _) => ends(inner, into),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn both_sides_are_read_alike() {
        let kernel = of_kernel(
            r#"[{"dst":"default","gateway":"10.1.0.2","dev":"e0","protocol":"bird","metric":32},
                {"dst":"default","gateway":"10.2.0.2","dev":"e1","protocol":"bgp","metric":40},
                {"dst":"10.1.0.0/24","dev":"e0","protocol":"kernel"},
                {"type":"blackhole","dst":"10.9.0.1","protocol":"bird"},
                {"dst":"10.8.0.0/16","protocol":"bgp","nexthops":[
                    {"gateway":"10.1.0.2","dev":"e0","weight":1},
                    {"via":{"family":"inet6","host":"fe80::1"},"dev":"e1","weight":1}]}]"#,
        )
        .unwrap();
        let member =
            |via: &str, to: &str| json!({"kind": "ip4-rewrite", "via": via, "interface": to});
        let group = json!([{ "members": [member("10.1.0.2", "host-e0")] },
                           { "members": [member("fe80::1", "host-e1")] }]);
        let answer = json!([{ "routes": [
            { "prefix": "0.0.0.0/0", "source": "lcp-rt-dynamic", "paths": [{"kind": "attached"}],
              "forwarding": [member("10.1.0.2", "host-e0")] },
            { "prefix": "10.1.0.0/24", "source": "interface", "paths": [], "forwarding": [] },
            { "prefix": "10.9.0.1/32", "source": "lcp-rt", "paths": [{"kind": "drop"}] },
            { "prefix": "10.8.0.0/16", "source": "lcp-rt-dynamic", "paths": [{"kind": "group"}],
              "forwarding": group },
        ] }]);
        let mut ours = of_router(&answer).unwrap();
        assert_eq!(differences(&kernel, &ours), Vec::<String>::new());
        ours.remove("10.8.0.0/16");
        ours.insert("10.7.0.0/16".into(), BTreeSet::new());
        assert_eq!(differences(&kernel, &ours).len(), 2);
    }
}
