use proptest::prelude::*;

use super::*;

fn good(text: &str) -> (HsflowdConf, Vec<String>) {
    let (conf, warnings) =
        HsflowdConf::parse(Reader::Agent, "h.conf", text).unwrap_or_else(|e| panic!("{text}\n{e}"));
    (conf, warnings.iter().map(ToString::to_string).collect())
}

fn bad(text: &str) -> Vec<String> {
    let error = HsflowdConf::parse(Reader::Agent, "h.conf", text).expect_err(text);
    let _ = error.to_string();
    error.0.iter().map(ToString::to_string).collect()
}

#[test]
fn everything_is_read() {
    let text = r#"
# a comment
sFlow {   polling = 20; sampling=1K
  headerBytes 64  DATAGRAMBYTES=8192;
  agent="eth0" agentIP = 2001:db8::7   # why not
  agent.cidr = 10.0.0.0/8 agent.cidr = !10.9.0.0/16 agent.cidr = fd00::/8
  subAgentId=7 uuid = 11111111-2222-3333-4444-555555555555
  collector { ip = 192.0.2.9 }
  collector{ip=2001:db8::9;udpport=7000;namespace=mgmt;dev='eth1'}
  COLLECTOR { IP = collector.example UDPPort = 6344 } collector { ip=fe80::2%eth3 }
  psample { group = 5 egress = on ingress=off }
  vpp { osIndex = off ifOffset = 2M }
  dropmon { start=off force=off limit=5 sw=off hw=off rn=off sw_passive=on hw_passive=on
            hw_unknown=on hide="^ip_(rcv|forward)$" max=9 max_trip=4 }
}
"#;
    let (conf, warnings) = good(text);
    let idle = "h.conf:3:25: sampling has no effect: the source of the samples sets the rate";
    assert_eq!(warnings, [idle]);
    assert_eq!((conf.polling, conf.sampling), (20, Some(1000)));
    assert_eq!((conf.header_bytes, conf.datagram_bytes), (64, 8192));
    assert_eq!(conf.agent.device.as_deref(), Some("eth0"));
    assert_eq!(conf.agent.address, Some("2001:db8::7".parse().unwrap()));
    let prefixes: Vec<_> = conf.agent.preferred.iter().map(ToString::to_string).collect();
    assert_eq!(prefixes, ["10.0.0.0/8", "fd00::/8"]);
    assert_eq!(conf.agent.excluded[0].to_string(), "10.9.0.0/16");
    assert_eq!((conf.sub_agent, conf.uuid.unwrap().0[0]), (Some(7), 0x11));
    let collectors: Vec<_> = conf.collectors.iter().map(ToString::to_string).collect();
    let expected = [
        "192.0.2.9:6343",
        "[2001:db8::9]:7000 namespace mgmt dev eth1",
        "collector.example:6344",
        "[fe80::2%eth3]:6343",
    ];
    assert_eq!(collectors, expected);
    assert_eq!(conf.psample, Some(PsampleConf { group: 5, ingress: false, egress: true }));
    assert_eq!(conf.vpp, Some(VppConf { os_index: false, if_offset: 2_000_000 }));
    let drops = conf.dropmon.unwrap();
    assert_eq!((drops.limit, drops.max, drops.max_trip), (5, 9, 4));
    assert!(!drops.start && !drops.force && !drops.software && !drops.hardware);
    assert!(!drops.reason_names && drops.software_passive && drops.hardware_passive);
    assert!(drops.unknown);
    assert_eq!(drops.hide.as_deref(), Some("^ip_(rcv|forward)$"));
}

#[test]
fn defaults_are_hsflowds() {
    let (conf, _) = good("sflow{collector{ip=127.0.0.1}psample{}vpp{}dropmon{}}");
    assert_eq!((conf.polling, conf.sampling, conf.header_bytes), (30, None, 128));
    assert_eq!((conf.datagram_bytes, conf.sub_agent, conf.uuid), (1400, None, None));
    assert_eq!(conf.psample, Some(PsampleConf { group: 1, ingress: true, egress: false }));
    assert_eq!(conf.vpp, Some(VppConf { os_index: true, if_offset: 1_000_000_000 }));
    assert_eq!(conf.dropmon.unwrap().limit, 100);
}

#[test]
fn what_has_no_effect_is_said() {
    let text = "sflow {\n dns-sd { domain = .example }\n collector { ip=192.0.2.1 }\n \
                dbus { x { y } }\n sampling.10G = 10K\n checkAdaptors=9\n}";
    let (_, warnings) = good(text);
    let begin: Vec<_> = warnings.iter().map(|w| w.split(':').take(4).collect::<String>()).collect();
    let expected = [
        "h.conf22 DNS-SD { } is not supported",
        "h.conf42 dbus { } is not supported",
        "h.conf52 sampling.10G has no effect",
        "h.conf62 checkAdaptors has no effect",
    ];
    assert_eq!(begin, expected);
    // Old names of settings, and those that concern what runs on the host.
    let text = "sflow { collector { ip=192.0.2.1 } counterPollingInterval=7 packetSamplingRate=8\n \
                modules=/x loopback=on xen.dsk=on\n sampling.http=9 polling.http=10\n \
                sampling.bps_ratio=1G dropmon { group=3 } }";
    let (conf, warnings) = good(text);
    assert_eq!((conf.polling, conf.sampling), (7, Some(8)));
    let words: Vec<_> = warnings.iter().filter_map(|w| w.split_once(" has no effect")).collect();
    let words: Vec<_> = words.iter().filter_map(|(w, _)| w.rsplit(' ').next()).collect();
    let expected = "packetSamplingRate modules loopback xen.dsk sampling.http polling.http \
                    sampling.bps_ratio group";
    assert_eq!(words.join(" "), expected);
    // DNS-SD alone is no collector, either.
    assert!(bad("sflow { DNS-SD { } }")[0].contains("no collector"));
}

/// With these keywords hsflowd would measure something that is not measured here: each is an error
/// with its place and a remedy, and other mistakes are reported as well.
#[test]
fn what_would_be_measured_otherwise_is_refused() {
    let text = "sflow {\n collector { ip=192.0.2.1 }\n pcap { dev=eth0 x { y } }\n \
                docker { }\n nflogGroup = 5\n samplingDirection = both\n polling = 301\n}";
    let expected = [
        "h.conf:3:2: pcap is not supported: packets are not sampled from devices: remove it, and have",
        "h.conf:4:2: docker is not supported: containers, virtual machines",
        "h.conf:5:2: nflogGroup is not supported: packets are",
        "h.conf:6:2: samplingDirection is not supported: say psample { ingress = on",
        "h.conf:7:12: `301' is not a number",
    ];
    let errors = bad(text);
    assert_eq!(errors.len(), expected.len(), "{errors:#?}");
    for (error, expected) in errors.iter().zip(expected) {
        assert!(error.starts_with(expected), "{error}");
    }
    let names = "pcap nflog ulog tcp json nlroute docker containerd podman k8s kvm xen systemd nvml \
                 eapi ovs cumulus dent opx os10 sonic";
    for name in names.split_whitespace() {
        let errors = bad(&format!("sflow {{ collector {{ ip=192.0.2.1 }} {name} {{ a=b }} }}"));
        assert!(errors.len() == 1 && errors[0].contains(" is not supported: "), "{errors:?}");
    }
    let text = "sflow { collector { ip=192.0.2.1 } sampling.bps_ratio=1M }";
    let error = HsflowdConf::parse(Reader::Router, "h", text).unwrap_err();
    assert!(error.0[0].message.ends_with("(sampling.10G = 10000)"), "{error}");
}

#[test]
fn a_router_takes_rates_and_leaves_what_is_the_agents() {
    let text = "sflow { collector { ip=192.0.2.1 } sampling=400 sampling.10G=10K Sampling.2500m=7 \
                sampling.app.x=3 psample { group=1 } vpp { } \
                dropmon { limit=5 hide=x } }";
    let (conf, warnings) = HsflowdConf::parse(Reader::Router, "h.conf", text).unwrap();
    let of: Vec<_> = conf.sampling_of.iter().map(|(s, n)| (s.to_string(), *n)).collect();
    assert_eq!(of, [("2500M".into(), 7), ("10G".into(), 10_000)]);
    assert_eq!((conf.sampling, conf.dropmon.map(|d| d.limit)), (Some(400), Some(5)));
    let words: Vec<_> =
        warnings.iter().filter_map(|w| w.message.split_once(" has no effect")).collect();
    let words: Vec<_> = words.iter().map(|(word, _)| *word).collect();
    assert_eq!(words, ["sampling.app.x", "psample", "vpp", "hide"]);
}

/// Every word of every object either changes what is read, or is reported to have no effect, or is
/// refused by its name, for each reader; another one is an error.
#[test]
fn no_word_is_accepted_silently() {
    fn walk(words: &[Keyword], open: &str, close: &str) {
        let read = |reader, text: &str| {
            HsflowdConf::parse(reader, "h", &format!("sflow{{collector{{ip=192.0.2.1}}{text}}}"))
        };
        for Keyword(word, value) in words {
            let values: &[&str] = match value {
                Value::Object(inner, _) => {
                    let named = if *word == "collector" { "ip=192.0.2.7 " } else { "" };
                    walk(inner, &format!("{open}{word}{{{named}"), &format!("}}{close}"));
                    &["{}", "{ip=192.0.2.7}"]
                }
                Value::Module(_) => &["{}"],
                Value::Refused(_) => {
                    for reader in [Reader::Agent, Reader::Router] {
                        let errors = read(reader, &format!("{open}{word}=7{close}")).unwrap_err().0;
                        let said = errors.len() == 1 && errors[0].message.starts_with(word);
                        assert!(said, "{open}{word} for {reader:?}: {errors:?}");
                    }
                    continue;
                }
                _ => &["7", "off", "on", "201", "500", "192.0.2.9", "10.0.0.0/8", "eth9", UUID],
            };
            for reader in [Reader::Agent, Reader::Router] {
                let seen = |(conf, warnings): &(HsflowdConf, Vec<Problem>)| {
                    let usual = read(reader, &format!("{open}{close}")).unwrap().0;
                    *conf != usual || warnings.iter().any(|w| w.message.starts_with(word))
                };
                let all = values.iter().map(|v| read(reader, &format!("{open}{word} {v}{close}")));
                assert!(all.flatten().any(|read| seen(&read)), "{open}{word} for {reader:?}");
            }
        }
        let errors = read(Reader::Router, &format!("{open} nonsense=1{close}")).unwrap_err().0;
        assert!(errors[0].message.starts_with("unknown keyword `nonsense'"), "{errors:?}");
    }
    const UUID: &str = "11111111-2222-3333-4444-555555555555";
    walk(SFLOW, "", "");
}

#[test]
fn mistakes_have_their_place() {
    let one = |text: &str, expected: &str| {
        let errors = bad(text);
        assert_eq!(errors.len(), 1, "{text}: {errors:#?}");
        assert!(errors[0].contains(expected), "{text}: {errors:#?}");
    };
    let c = "collector{ip=192.0.2.1}";
    one("", "h.conf:1:1: the file must begin with sflow { }");
    one("sflo { }", "h.conf:1:1: the file must begin with sflow");
    one("sflow polling", "expected { after sflow");
    one(&format!("sflow {{ {c}"), "h.conf:1:1: missing }: the { after sflow is not closed");
    one(&format!("sflow {{ {c} }}\n}}"), "h.conf:2:1: unexpected text after");
    one(&format!("sflow {{\n {c}\n  pollin = 20\n}}"), "h.conf:3:3: unknown keyword `pollin'");
    one(&format!("sflow {{ {c} wrong {{ a = b {{ }} }} polling=1 }}"), "unknown keyword `wrong'");
    one(&format!("sflow {{ {c} polling = 301 }}"), "`301' is not a number from 0 to 300");
    one(&format!("sflow {{ {c} polling = 1T }}"), "`1T' is not a number");
    one(&format!("sflow {{ {c} polling = -1 }}"), "`-1' is not a number");
    one(&format!("sflow {{ {c} sampling = 99999999999G }}"), "is not a number from 0 to 10000000");
    one(&format!("sflow {{ {c} polling }}"), "expected a number from 0 to 300 after polling");
    one(&format!("sflow {{ {c} polling {{ }} }}"), "expected a number from 0 to 300 after polling");
    one(&format!("sflow {{ {c} sampling. = 9 }}"), "unknown keyword `sampling.'");
    one(&format!("sflow {{ {c} sampling.http = x }}"), "`x' is not a number from 0 to 10000000");
    one(&format!("sflow {{ {c} polling.http = 301 }}"), "`301' is not a number from 0 to 300");
    one(
        &format!("sflow {{ {c} psample {{ sampling.http = 9 }} }}"),
        "unknown keyword `sampling.http'",
    );
    one(&format!("sflow {{ {c} sampling.1G = 1T }}"), "`1T' is not a number from 0 to 10000000");
    one(&format!("sflow {{ {c} datagramBytes=199 }}"), "a number from 200 to 8192");
    one(&format!("sflow {{ {c} agent.cidr = 10/8 }}"), "not a prefix such as");
    one(&format!("sflow {{ {c} agentIP = ::}}"), "not a valid agent address");
    one(&format!("sflow {{ {c} agent = a/b}}"), "not a device name");
    one(&format!("sflow {{ {c} uuid = 12 }}"), "not a UUID");
    one(&format!("sflow {{ {c} agent = \"eth0\n}}"), "expected a device such as eth0 after agent");
    one(&format!("sflow {{ {c} {{ polling = 2 }} }}"), "expected a keyword before {");
    one(&format!("sflow {{ {c} psample }}"), "expected { after psample");
    one(&format!("sflow {{ {c} psample {{ group = 33 }} }}"), "a number from 1 to 32");
    one(&format!("sflow {{ {c} psample {{ egress = maybe }} }}"), "neither on nor off");
    one(&format!("sflow {{ {c} psample {{ polling = 3 }} }}"), "expected one of group, ingress");
    one(&format!("sflow {{ {c} dropmon {{ hide = '(' }} }}"), "is not a valid regular expression");
    one("sflow { collector { udpport = 1 } }", "h.conf:1:9: collector without address");
    one("sflow { collector { ip = 1.2.3 } }", "neither an IP address nor a host's name");
    one("sflow { collector { ip = 0.0.0.0 } }", "not a unicast address");
    one("sflow { collector { ip = fe80::1 } }", "say which, such as fe80::1%eth0");
    one("sflow { collector { ip = x udpport = 0 } }", "a number from 1 to 65535");
    one("sflow { collector { ip = x namespace = ../y } }", "not the name of a network namespace");
}

#[test]
fn lengths_fit_together_and_collectors_are_told_apart() {
    let read = |reader, text: &str| HsflowdConf::parse(reader, "h.conf", text);
    let c = "collector{ip=192.0.2.1}";
    let error = read(Reader::Agent, &format!("sflow {{\n {c}\n datagramBytes = 200\n}}"));
    let error = error.unwrap_err();
    assert_eq!(error.0[0].place, "h.conf:3:18");
    let why = "headers of 128 bytes do not fit into datagrams of 200 bytes: these need 256 or more";
    assert_eq!(error.0[0].message, why);
    let text = format!("sflow {{ {c} datagramBytes = 300 headerBytes=128 }}");
    assert!(read(Reader::Agent, &text).is_ok());
    let error = read(Reader::Router, &text).unwrap_err().to_string();
    assert!(error.contains("headers of 256 bytes") && error.contains("need 384"), "{error}");
    let text = format!("sflow {{ {c} collector {{ ip=192.0.2.1 udpport=7000 }}\n {c} polling=0 }}");
    let (conf, warnings) = read(Reader::Router, &text).unwrap();
    assert_eq!(conf.collectors.len(), 2);
    let said: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[0].contains("h.conf:2:2: duplicate collector 192.0.2.1"), "{said:?}");
    assert!(said[1].contains("interface counters are still sent"), "{said:?}");
}

#[test]
fn what_is_refused_is_not_proposed() {
    let error = HsflowdConf::parse(Reader::Agent, "h.conf", "sflow { pollig = 3 }").unwrap_err();
    let message = &error.0[0].message;
    assert!(message.contains("expected one of ") && message.contains("polling"), "{message}");
    assert!(!message.contains("docker") && !message.contains("ulogGroup"), "{message}");
}

#[test]
fn bytes_of_another_encoding_have_a_place() {
    let read = |bytes| HsflowdConf::parse_bytes(Reader::Agent, "h.conf", bytes);
    assert!(read(b"sflow { # z\xfcrich\n collector { ip = 192.0.2.1 } }").is_ok());
    let error = read(b"sflow {\n collector { ip = z\xfcrich } }").unwrap_err();
    assert_eq!(error.0[0].place, "h.conf:2:19", "{error}");
}

#[test]
fn the_place_is_marked() {
    let error =
        HsflowdConf::parse(Reader::Agent, "h.conf", "sflow {\n\tpolling = x # ä\n}").unwrap_err();
    let shown = error.to_string();
    let expected = "h.conf:2:12: `x' is not a number from 0 to 300\n    2 |  polling = x # ä\n      \
                    |            ^";
    assert!(shown.starts_with(expected), "{shown}");
}

proptest! {
    /// No text makes it panic, and there are never too many messages.
    #[test]
    fn any_text_is_taken(text in "(sflow|collector|ip|=|;|\\{|\\}|#|\"|'|\n| |[a-z0-9.ä/!-]){0,60}") {
        for text in [text.clone(), format!("sflow {{ {text}")] {
            match HsflowdConf::parse(Reader::Agent, "f", &text) {
                Ok((conf, _)) => prop_assert!(!conf.collectors.is_empty()),
                Err(error) => {
                    prop_assert!((1..=MAX_PROBLEMS).contains(&error.0.len()));
                    prop_assert!(!error.to_string().is_empty());
                }
            }
        }
    }
}
