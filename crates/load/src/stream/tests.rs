mod fields;
mod link;
mod parts;
mod schedule;
