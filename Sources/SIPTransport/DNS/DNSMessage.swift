internal import CallBasics
package import SIP

/// Reads the answers of name servers; bytes that are wrong are an answer that failed.
///
///     id 2 | flags 2 | counts 4 x 2 | questions | answers | authorities | additional records
///
/// Source: RFC 1035, section 4; RFC 2782 (SRV), RFC 3403 (NAPTR), RFC 3596 (AAAA), RFC 2308 (what is not there)
package enum DNSMessage {
    /// Records of one message that are looked at.
    private static let recordCount = 256

    /// What the message in `bytes` answers.
    ///
    /// Records of other kinds and classes are passed over.
    package static func answer(in bytes: [UInt8]) -> DNSAnswer {
        var reader = DNSReader(bytes)
        guard let head = Head(&reader), head.isResponse, !head.isCut else { return .failure }
        for _ in 0..<head.questionCount { guard reader.skipName(), reader.skip(4) else { return .failure } }
        guard let answers = records(head.answerCount, &reader) else { return .failure }
        if head.code == 0, !answers.isEmpty { return .records(answers) }
        guard head.code == 0 || head.code == 3 else { return .failure }
        let life = emptyLife(head.authorityCount, &reader)
        return head.code == 3 ? .noSuchName(life) : .noData(life)
    }

    private struct Head {
        let isResponse: Bool
        let isCut: Bool
        let code: UInt16
        let questionCount, answerCount, authorityCount: Int

        init?(_ reader: inout DNSReader) {
            guard reader.number16() != nil, let flags = reader.number16(), let questions = reader.number16(),
                let answers = reader.number16(), let authorities = reader.number16(), reader.skip(2)
            else { return nil }
            (isResponse, isCut, code) = (flags & 0x8000 != 0, flags & 0x0200 != 0, flags & 15)
            (questionCount, answerCount, authorityCount) = (Int(questions), Int(answers), Int(authorities))
        }
    }

    /// The records of a section that are of use; nil when the bytes end in it.
    private static func records(_ count: Int, _ reader: inout DNSReader) -> [DNSRecord]? {
        var records: [DNSRecord] = []
        for index in 0..<count {
            guard let record = RawRecord(&reader) else { return nil }
            guard index < recordCount, let owner = record.owner, record.isInternet,
                let value = record.value(in: reader)
            else { continue }
            records.append(DNSRecord(owner, seconds: record.seconds, value))
        }
        return records
    }

    /// How long it holds that there is nothing: what the zone's SOA record says.
    private static func emptyLife(_ count: Int, _ reader: inout DNSReader) -> Duration? {
        for _ in 0..<min(count, recordCount) {
            guard let record = RawRecord(&reader) else { return nil }
            guard record.type == 6, record.isInternet, record.data.count >= 20 else { continue }
            var end = reader.moved(to: record.data.upperBound - 4)
            guard let minimum = end.number32() else { return nil }
            return .seconds(min(minimum, record.seconds))
        }
        return nil
    }
}

/// A record before it is known what it holds.
private struct RawRecord {
    /// Nil when it is no name that a host can have.
    let owner: DNSName?
    let type: UInt16
    let isInternet: Bool
    let seconds: UInt32
    let data: Range<Int>

    init?(_ reader: inout DNSReader) {
        let start = reader
        guard reader.skipName(), let type = reader.number16(), let kind = reader.number16(),
            let life = reader.number32(), let count = reader.number16()
        else { return nil }
        var name = start
        owner = name.name()
        // RFC 2181, section 8: a life with its highest bit set is none.
        seconds = life > Int32.max ? 0 : life
        (self.type, isInternet) = (type, kind == 1)
        data = reader.index..<(reader.index + Int(count))
        guard reader.skip(Int(count)) else { return nil }
    }

    /// Nil when it is of another kind, or not well-formed.
    func value(in message: DNSReader) -> DNSRecord.Value? {
        var reader = message.moved(to: data.lowerBound)
        let value: DNSRecord.Value?
        switch type {
        case 1: value = data.count == 4 ? reader.number32().map { .address(SocketAddress(ipv4: $0, port: 0)) } : nil
        case 5: value = reader.name().map { .alias($0) }
        case 28: value = data.count == 16 ? Self.address(&reader) : nil
        case 33: value = Self.service(&reader)
        case 35: value = Self.pointer(&reader)
        default: value = nil
        }
        return reader.index <= data.upperBound ? value : nil
    }

    private static func address(_ reader: inout DNSReader) -> DNSRecord.Value? {
        guard let high = reader.number64(), let low = reader.number64() else { return nil }
        return .address(SocketAddress(ipv6High: high, low: low, port: 0))
    }

    private static func service(_ reader: inout DNSReader) -> DNSRecord.Value? {
        guard let priority = reader.number16(), let weight = reader.number16(), let port = reader.number16(),
            let target = reader.name()
        else { return nil }
        return .service(ServiceRecord(priority: priority, weight: weight, port: port, target: target))
    }

    private static func pointer(_ reader: inout DNSReader) -> DNSRecord.Value? {
        guard let order = reader.number16(), let preference = reader.number16(), let flags = reader.text(),
            let service = reader.text(), reader.text() != nil, let replacement = reader.name()
        else { return nil }
        return .pointer(
            PointerRecord(
                order: order,
                preference: preference,
                flags: flags,
                service: service,
                replacement: replacement
            )
        )
    }
}
