//! Examples in pages for operators are right.

#![allow(clippy::expect_used, clippy::panic)]

#[test]
fn configuration() {
    let page = include_str!("../../../docs/configuration.md");
    let (_, document) = page.split_once("```yaml\n").expect("a document");
    let (document, _) = document.split_once("```").expect("its end");
    let catalog = thalweg::configuration::catalog().expect("a catalog");
    let n = catalog.read("lab.yaml", document).expect("a valid document").items().len();
    assert!(n >= 10, "{n}");
    let Err(error) = catalog.read("lab.yaml", "interfaces:\n  host-eth0:\n    mut: 1500\n") else {
        panic!("an unknown key was accepted");
    };
    assert!(page.contains(error.to_string().trim()), "{error}");
}
