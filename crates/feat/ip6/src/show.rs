//! Lines of other features in `show ip6 interface`.

use thalweg_cli::Output;
use thalweg_device::InterfaceView;
use thalweg_graph::Control;

/// Writes lines below an interface that speaks IPv6, and returns a key with a value for JSON.
pub type Part = fn(&Control, &InterfaceView, &mut Output) -> (&'static str, serde_json::Value);

#[derive(Default)]
struct Parts(Vec<Part>);

pub(crate) fn init(c: &mut Control) {
    c.insert(Parts::default());
}

/// Adds a part. To be called from the `init` of its feature.
pub fn add(c: &mut Control, part: Part) {
    c.state::<Parts>().borrow_mut().0.push(part);
}

pub(crate) fn parts(c: &Control) -> Vec<Part> {
    c.state::<Parts>().borrow().0.clone()
}
