mod fields;
mod link;
mod schedule;
