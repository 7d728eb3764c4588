//! `adjacency counters`.

use crate::Forwarding;
use thalweg_engine::setting::{Global, Rare, Switch};

/// Counters by route and adjacency.
pub static SETTING: Global<Switch> = Global {
    command: "adjacency counters",
    help: "Count packets and bytes by route and adjacency\n\
           `show ip fib' prints the counters, and the statistics segment has them as `/net/route/to'\n\
           and `/net/route/via', by forwarding object. Routes with the same paths share an object.",
    form: Switch("counters"),
    key: "thalweg.route-counters",
    default: || false,
    get: |c| Some(c.state::<Forwarding>().borrow().counting()),
    set: |c, on| {
        c.state::<Forwarding>().borrow_mut().set_counting(on);
        Ok(())
    },
    rare: Rare {
        aliases: &["adj counters"],
        note: |_, on, out| out.json(serde_json::json!({ "counters": on })),
        ..Rare::NONE
    },
};
