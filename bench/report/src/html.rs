//! The report as one page that needs nothing else.

use std::fmt::Write;

use serde_json::Value;

use thalweg_plot::STYLE;

use crate::plots::Plot;
use crate::results::{Bench, Ran, Table, number, spread};
use crate::targets::Reached;

/// The page.
pub fn page(ran: &[Ran], benches: &[Bench], targets: &[Reached], plots: &[Plot]) -> String {
    let mut body = String::new();
    if let Some(first) = benches.first() {
        let machine = &first.machine;
        let field = |name: &str| escape(machine[name].as_str().unwrap_or("unknown"));
        let _ = writeln!(
            body,
            "<p class=machine>{}, {} cores, time-stamp counter {} MHz, Linux {}, huge pages {}{}.</p>",
            field("cpu"),
            machine["cores"],
            machine["tsc_mhz"],
            field("kernel"),
            field("huge_pages"),
            if machine["hypervisor"] == true { ", a virtual machine" } else { "" }
        );
    }
    body += "<nav><a href=\"#targets\">Targets</a>";
    for b in benches {
        let _ = write!(body, "<a href=\"#{0}\">{0}</a>", escape(&b.bench));
    }
    body += "<a href=\"#runs\">Runs</a></nav>\n";
    body += &target_table(targets);
    for b in benches {
        let _ =
            writeln!(body, "<section id=\"{}\"><h2>{}</h2>", escape(&b.bench), escape(&b.title));
        for text in &b.about {
            let _ = writeln!(body, "<p>{}</p>", escape(text));
        }
        for t in &b.tables {
            body += &table(t);
            for plot in plots.iter().filter(|p| p.table == t.title) {
                let _ = writeln!(body, "<figure>{}</figure>", plot.svg);
            }
        }
        body += "</section>\n";
    }
    body += &runs(ran, benches);
    format!(
        "<!doctype html>\n<html lang=en><head><meta charset=utf-8>\
         <meta name=viewport content=\"width=device-width, initial-scale=1\">\
         <title>Thalweg: performance report</title>\n<style>\n{STYLE}</style></head>\n\
         <body><main><h1>Performance report</h1>\n{body}</main></body></html>\n"
    )
}

fn target_table(targets: &[Reached]) -> String {
    let mut text = String::from(
        "<section id=targets><h2>Targets</h2><div class=wide><table><thead><tr><th>what</th>\
         <th class=n>target</th><th class=n>reached</th><th></th>\
         <th class=n>VPP 26.06, elsewhere</th></tr></thead><tbody>\n",
    );
    for t in targets {
        let (class, mark) = match t.holds {
            None => ("none", ""),
            Some(true) => ("good", "✔"),
            Some(false) => ("bad", "✘"),
        };
        let noisy = if t.noisy { " noisy" } else { "" };
        let _ = writeln!(
            text,
            "<tr><td>{}</td><td class=n>{}</td><td class=\"n{noisy}\">{}</td>\
             <td class={class}>{mark}</td><td class=n>{}</td></tr>",
            escape(t.what),
            escape(&t.target),
            escape(&t.value),
            escape(t.vpp)
        );
    }
    text + "</tbody></table></div><p>Medians, with the least and greatest of the rounds. What is noisy \
            (rounds that spread by more than 10 %) is underlined with dots. VPP's figures were \
            measured elsewhere on this kind of machine: they are no ratios of one run.</p></section>\n"
}

fn runs(ran: &[Ran], benches: &[Bench]) -> String {
    let mut text = String::from(
        "<section id=runs><h2>Runs</h2><div class=wide><table><thead><tr><th>benchmark</th>\
         <th>from</th><th>to</th><th class=n>took</th><th class=n>stolen</th>\
         <th class=n>one processor, M steps/s</th><th class=n>two processors</th><th class=n>a line, ns</th></tr></thead><tbody>\n",
    );
    for one in ran {
        let name = escape(&one.name);
        let _ = match (&one.failed, benches.iter().find(|b| b.bench == one.name)) {
            (None, Some(b)) => writeln!(
                text,
                "<tr><td>{name}</td><td>{}</td><td>{}</td><td class=n>{:.0} s</td>\
                 <td class=n>{:.1} %</td><td class=n>{}</td><td class=n>{}</td><td class=n>{}</td></tr>",
                escape(&b.started),
                escape(&b.ended),
                one.seconds,
                b.steal_percent,
                b.one().unwrap_or_default(),
                b.two().unwrap_or_default(),
                b.line().unwrap_or_default()
            ),
            (why, _) => writeln!(
                text,
                "<tr><td>{name}</td><td class=bad colspan=7><pre>{}</pre></td></tr>",
                escape(why.as_deref().unwrap_or("no results"))
            ),
        };
    }
    text + "</tbody></table></div></section>\n"
}

fn table(t: &Table) -> String {
    let mut text = format!("<h3>{}</h3><div class=wide><table><thead><tr>", escape(&t.title));
    // A column is one of values if no cell of it is a text.
    let is_text = |at: usize| t.rows.iter().any(|row| row.get(at).is_some_and(Value::is_string));
    for (at, column) in t.columns.iter().enumerate() {
        let unit = if column.unit.is_empty() || column.unit == column.name {
            String::new()
        } else {
            format!("<br><small>{}</small>", escape(&column.unit))
        };
        let class = if is_text(at) { "" } else { " class=n" };
        let _ = write!(text, "<th{class}>{}{unit}</th>", escape(&column.name));
    }
    text += "</tr></thead><tbody>\n";
    for row in &t.rows {
        text += "<tr>";
        row.iter().for_each(|c| text += &cell(c));
        text += "</tr>\n";
    }
    text += "</tbody></table></div>\n";
    for note in &t.notes {
        let _ = writeln!(text, "<p>{}</p>", escape(note));
    }
    text
}

fn cell(c: &Value) -> String {
    if let Some(s) = spread(c) {
        let digits = c["digits"].as_u64().unwrap_or(2) as usize;
        let n = |v| number(v, digits);
        let class = if c["noisy"] == true { "n noisy" } else { "n" };
        let ends = if s.rounds > 1 {
            format!(" <small>{}–{}</small>", n(s.least), n(s.most))
        } else {
            String::new()
        };
        return format!("<td class=\"{class}\">{}{ends}</td>", n(s.median));
    }
    match c {
        Value::String(s) => format!("<td>{}</td>", escape(s)),
        Value::Number(v) => {
            let v = v.as_f64().unwrap_or(0.0);
            format!("<td class=n>{}</td>", number(v, if v.fract() == 0.0 { 0 } else { 2 }))
        }
        Value::Object(o) => match (o.get("guide"), o.get("missing")) {
            (Some(guide), _) => {
                let (class, mark) =
                    if c["holds"] == true { ("good", "✔") } else { ("bad", "✘") };
                format!("<td class={class}>{} {mark}</td>", escape(guide.as_str().unwrap_or("")))
            }
            (_, Some(why)) => format!("<td class=none>{}</td>", escape(why.as_str().unwrap_or(""))),
            _ => "<td></td>".into(),
        },
        _ => "<td class=n>–</td>".into(),
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn cells_of_all_kinds_are_shown() {
        let s = json!({"median": 2.0, "least": 1.0, "most": 3.0, "rounds": 5, "digits": 1,
                       "noisy": true});
        assert_eq!(cell(&s), "<td class=\"n noisy\">2.0 <small>1.0–3.0</small></td>");
        assert_eq!(cell(&json!("a<b")), "<td>a&lt;b</td>");
        assert_eq!(cell(&json!({"guide": "≤ 1", "holds": false})), "<td class=bad>≤ 1 ✘</td>");
        assert_eq!(cell(&json!({"missing": "why"})), "<td class=none>why</td>");
        assert_eq!(cell(&json!(256.0)), "<td class=n>256</td>");
        assert_eq!(cell(&Value::Null), "<td class=n>–</td>");
    }

    #[test]
    fn the_page_needs_nothing_else() {
        let page = page(&[Ran::default()], &[], &crate::targets::reached(&[]), &[]);
        assert!(page.contains("prefers-color-scheme: dark"));
        assert!(!page.contains("http"), "nothing is fetched");
    }
}
