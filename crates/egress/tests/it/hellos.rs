//! Makes TLS hellos, good and bad ones.

pub(crate) const ENCRYPTED: u16 = 0xfe0d;

/// A hello with these extensions, in one record.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hello {
    pub(crate) extensions: Vec<(u16, Vec<u8>)>,
    /// Bytes behind the message in its record.
    pub(crate) after: Vec<u8>,
}

pub(crate) fn long(bytes: &[u8]) -> Vec<u8> {
    [&u16::try_from(bytes.len()).unwrap().to_be_bytes(), bytes].concat()
}

pub(crate) fn entry(kind: u8, name: &[u8]) -> Vec<u8> {
    [&[kind], long(name).as_slice()].concat()
}

impl Hello {
    /// Names nobody.
    pub(crate) fn silent() -> Self {
        // supported_versions: TLS 1.3
        Self { extensions: vec![(43, vec![2, 3, 4])], after: Vec::new() }
    }

    pub(crate) fn of(name: &str) -> Self {
        Self::silent().with(0, long(&entry(0, name.as_bytes())))
    }

    pub(crate) fn with(mut self, kind: u16, content: Vec<u8>) -> Self {
        self.extensions.push((kind, content));
        self
    }

    /// The message, with its head.
    pub(crate) fn message(&self) -> Vec<u8> {
        let mut body = vec![3, 3];
        body.extend([7; 32]);
        body.push(32);
        body.extend([9; 32]);
        body.extend(long(&[0x13, 0x01, 0x13, 0x02]));
        body.extend([1, 0]);
        let each = self.extensions.iter();
        let extensions: Vec<u8> =
            each.flat_map(|(kind, content)| [kind.to_be_bytes().to_vec(), long(content)].concat()).collect();
        body.extend(long(&extensions));
        message(1, &body)
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        record(&[self.message(), self.after.clone()].concat())
    }

    /// The same, with records of this many bytes.
    pub(crate) fn in_records(&self, of: usize) -> Vec<u8> {
        self.message().chunks(of).flat_map(record).collect()
    }
}

pub(crate) fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).unwrap().to_be_bytes();
    [&[kind], &length[1..], body].concat()
}

pub(crate) fn record(bytes: &[u8]) -> Vec<u8> {
    [&[22, 3, 1], long(bytes).as_slice()].concat()
}
