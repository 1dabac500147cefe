//! Which addresses are public: a table, and a slow reference over many.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use herma_egress::addresses::{BadAnswers, Checked, Kind, MAX_ANSWERS, refused};
use proptest::prelude::*;

#[test]
fn every_range_is_known_at_both_of_its_ends() {
    use Kind as K;
    let rows: &[(&str, Option<Kind>)] = &[
        ("0.0.0.0", Some(K::Unspecified)),
        ("0.255.255.255", Some(K::Reserved)),
        ("1.0.0.0", None),
        ("9.255.255.255", None),
        ("10.0.0.0", Some(K::Private)),
        ("10.255.255.255", Some(K::Private)),
        ("11.0.0.0", None),
        ("100.63.255.255", None),
        ("100.64.0.0", Some(K::Shared)),
        ("100.100.100.200", Some(K::Metadata)),
        ("100.127.255.255", Some(K::Shared)),
        ("100.128.0.0", None),
        ("126.255.255.255", None),
        ("127.0.0.1", Some(K::Loopback)),
        ("127.255.255.255", Some(K::Loopback)),
        ("128.0.0.0", None),
        ("168.63.129.15", None),
        ("168.63.129.16", Some(K::Metadata)),
        ("169.253.255.255", None),
        ("169.254.0.0", Some(K::LinkLocal)),
        ("169.254.169.254", Some(K::Metadata)),
        ("169.254.170.2", Some(K::Metadata)),
        ("169.255.0.0", None),
        ("172.15.255.255", None),
        ("172.16.0.0", Some(K::Private)),
        ("172.31.255.255", Some(K::Private)),
        ("172.32.0.0", None),
        ("192.0.0.1", Some(K::Reserved)),
        ("192.0.0.192", Some(K::Metadata)),
        ("192.0.1.0", None),
        ("192.0.2.1", Some(K::Documentation)),
        ("192.88.99.1", Some(K::SixToFour)),
        ("192.167.255.255", None),
        ("192.168.0.1", Some(K::Private)),
        ("192.169.0.0", None),
        ("198.17.255.255", None),
        ("198.18.0.0", Some(K::Benchmarking)),
        ("198.19.255.255", Some(K::Benchmarking)),
        ("198.20.0.0", None),
        ("198.51.100.7", Some(K::Documentation)),
        ("203.0.113.7", Some(K::Documentation)),
        ("223.255.255.255", None),
        ("224.0.0.1", Some(K::Multicast)),
        ("239.255.255.255", Some(K::Multicast)),
        ("240.0.0.0", Some(K::Reserved)),
        ("255.255.255.254", Some(K::Reserved)),
        ("255.255.255.255", Some(K::Broadcast)),
        ("::", Some(K::Unspecified)),
        ("::1", Some(K::Loopback)),
        ("::2", Some(K::Compatible)),
        ("::127.0.0.1", Some(K::Compatible)),
        ("::8.8.8.8", Some(K::Compatible)),
        ("::ffff:127.0.0.1", Some(K::Mapped)),
        ("::ffff:169.254.169.254", Some(K::Mapped)),
        ("::ffff:8.8.8.8", Some(K::Mapped)),
        ("::ffff:0:8.8.8.8", Some(K::Reserved)),
        ("64:ff9b::8.8.8.8", None),
        ("64:ff9b::10.0.0.1", Some(K::Nat64)),
        ("64:ff9b::127.0.0.1", Some(K::Nat64)),
        ("64:ff9b::169.254.169.254", Some(K::Nat64)),
        ("64:ff9b:1::8.8.8.8", Some(K::Nat64)),
        ("64:ff9b:0:0:0:1:808:808", Some(K::Reserved)),
        ("100::1", Some(K::Reserved)),
        ("1fff:ffff::", Some(K::Reserved)),
        ("2000::", None),
        ("2001::1", Some(K::Teredo)),
        ("2001:0:ffff::", Some(K::Teredo)),
        ("2001:2::1", Some(K::Benchmarking)),
        ("2001:20::1", Some(K::Reserved)),
        ("2001:1ff:ffff::", Some(K::Reserved)),
        ("2001:200::", None),
        ("2001:db8::1", Some(K::Documentation)),
        ("2001:db9::1", None),
        ("2002:7f00:1::", Some(K::SixToFour)),
        ("2002:808:808::1", Some(K::SixToFour)),
        ("2003::1", None),
        ("2606:4700::1111", None),
        ("3ffe:ffff::1", None),
        ("3fff::1", Some(K::Documentation)),
        ("3fff:fff:ffff::1", Some(K::Documentation)),
        ("3fff:1000::1", None),
        ("4000::", Some(K::Reserved)),
        ("5f00::1", Some(K::Reserved)),
        ("fbff::1", Some(K::Reserved)),
        ("fc00::1", Some(K::UniqueLocal)),
        ("fd00:ec2::254", Some(K::Metadata)),
        ("fd20:ce::254", Some(K::Metadata)),
        ("fdff:ffff::1", Some(K::UniqueLocal)),
        ("fe00::1", Some(K::Reserved)),
        ("fe80::1", Some(K::LinkLocal)),
        ("febf:ffff::1", Some(K::LinkLocal)),
        ("fec0::1", Some(K::SiteLocal)),
        ("feff:ffff::1", Some(K::SiteLocal)),
        ("ff02::1", Some(K::Multicast)),
    ];
    for (address, kind) in rows {
        assert_eq!(refused(address.parse().unwrap()), *kind, "{address}");
    }
}

#[test]
fn one_answer_that_is_refused_refuses_all() {
    let public: IpAddr = "8.8.8.8".parse().unwrap();
    let private: IpAddr = "10.0.0.1".parse().unwrap();
    let refused = Err(BadAnswers::Refused { address: private, kind: Kind::Private });
    for place in 0..MAX_ANSWERS {
        let mut answers = vec![public; MAX_ANSWERS];
        assert!(Checked::check(&answers).is_ok());
        answers[place] = private;
        assert_eq!(Checked::check(&answers), refused, "at {place}");
    }
    assert_eq!(Checked::check(&[]), Err(BadAnswers::None));
    assert_eq!(Checked::check(&[public; MAX_ANSWERS + 1]), Err(BadAnswers::TooMany));
}

#[test]
fn both_families_are_tried_and_never_more_than_a_few() {
    let answers: Vec<IpAddr> = ["2600::1", "2600::2", "2600::3", "2600::4", "2600::5", "8.8.8.8"]
        .iter()
        .map(|a| a.parse().unwrap())
        .collect();
    let targets = Checked::check(&answers).unwrap().targets(443);
    let shown: Vec<String> = targets.iter().map(|target| target.address().to_string()).collect();
    assert_eq!(shown, ["[2600::1]:443", "8.8.8.8:443", "[2600::2]:443", "[2600::3]:443"]);
}

/// The ranges once more, as text of their first bits, from the registries of IANA.
const NOT_PUBLIC_V4: &[&str] = &[
    "00000000",                         // 0/8
    "00001010",                         // 10/8
    "0110010001",                       // 100.64/10
    "01111111",                         // 127/8
    "10101000001111111000000100010000", // 168.63.129.16
    "1010100111111110",                 // 169.254/16
    "101011000001",                     // 172.16/12
    "110000000000000000000000",         // 192.0.0/24
    "110000000000000000000010",         // 192.0.2/24
    "110000000101100001100011",         // 192.88.99/24
    "1100000010101000",                 // 192.168/16
    "110001100001001",                  // 198.18/15
    "110001100011001101100100",         // 198.51.100/24
    "110010110000000001110001",         // 203.0.113/24
    "111",                              // 224/4 and 240/4
];

fn bits(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:08b}")).collect::<Vec<_>>().concat()
}

fn slowly_public_v4(address: Ipv4Addr) -> bool {
    let bits = bits(&address.octets());
    !NOT_PUBLIC_V4.iter().any(|prefix| bits.starts_with(prefix))
}

fn slowly_public_v6(address: Ipv6Addr) -> bool {
    let text = address.segments().map(|segment| format!("{segment:04x}")).concat();
    if let Some(low) = text.strip_prefix("0064ff9b0000000000000000") {
        let low = u32::from_str_radix(low, 16).unwrap();
        return slowly_public_v4(Ipv4Addr::from(low));
    }
    let is_given_out = text.starts_with('2') || text.starts_with('3');
    let is_protocol = text.starts_with("2001") && u16::from_str_radix(&text[4..8], 16).unwrap() < 0x200;
    let is_documentation = text.starts_with("20010db8") || text.starts_with("3fff0");
    is_given_out && !is_protocol && !is_documentation && !text.starts_with("2002")
}

/// Addresses around the edges, where random ones would hardly ever fall.
fn v6() -> impl Strategy<Value = Ipv6Addr> {
    let edges = prop::sample::select(vec![
        0u128,
        0xffff << 32,
        0x64_ff9b << 96,
        0x0064_ff9b_0001 << 80,
        0x2000 << 112,
        0x2001 << 112,
        0x2001_0200 << 96,
        0x2001_0db8 << 96,
        0x2002 << 112,
        0x3fff << 112,
        0x3fff_1000 << 96,
        0x4000 << 112,
        0xfc00 << 112,
        0xfe80 << 112,
        0xfec0 << 112,
        0xff00 << 112,
    ]);
    prop_oneof![
        any::<u128>().prop_map(Ipv6Addr::from),
        (edges.clone(), 0u128..1 << 34).prop_map(|(edge, more)| Ipv6Addr::from(edge.wrapping_add(more))),
        (edges.clone(), 0u128..1 << 34).prop_map(|(edge, less)| Ipv6Addr::from(edge.wrapping_sub(less))),
        (edges, 0u32..128).prop_map(|(edge, bit)| Ipv6Addr::from(edge ^ (1 << bit))),
    ]
}

fn v4() -> impl Strategy<Value = Ipv4Addr> {
    let firsts = prop::sample::select(vec![0u8, 10, 100, 127, 168, 169, 172, 192, 198, 203, 224, 240, 255]);
    let seconds = prop::sample::select(vec![0u8, 15, 16, 18, 31, 51, 63, 64, 88, 127, 168, 254]);
    prop_oneof![
        any::<u32>().prop_map(Ipv4Addr::from),
        (firsts, seconds, any::<u8>(), any::<u8>()).prop_map(|(a, b, c, d)| Ipv4Addr::new(a, b, c, d)),
        prop::sample::select(vec![
            "192.0.0.255",
            "192.0.3.0",
            "198.51.99.255",
            "203.0.114.0",
            "168.63.129.16"
        ])
        .prop_map(|text| text.parse().unwrap()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn an_ipv4_address_is_public_where_the_slow_reference_says_so(address in v4()) {
        prop_assert_eq!(refused(address.into()).is_none(), slowly_public_v4(address));
    }

    #[test]
    fn an_ipv6_address_is_public_where_the_slow_reference_says_so(address in v6()) {
        prop_assert_eq!(refused(address.into()).is_none(), slowly_public_v6(address));
    }

    #[test]
    fn no_form_of_ipv6_hides_an_ipv4_address_that_is_refused(address in v4()) {
        if refused(address.into()).is_none() {
            return Ok(());
        }
        let low = u128::from(address.to_bits());
        let forms = [
            low, 0xffff << 32 | low, 0xffff << 48 | low, 0x64_ff9b << 96 | low, 0x0064_ff9b_0001 << 80 | low,
            0x2002 << 112 | low << 80, 0x2001 << 112 | low << 64, 0x2001 << 112 | (low ^ 0xffff_ffff),
        ];
        for form in forms {
            prop_assert!(refused(Ipv6Addr::from(form).into()).is_some(), "{}", Ipv6Addr::from(form));
        }
    }
}
