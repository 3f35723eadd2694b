internal import CallBasics

/// The parameters behind a header's value or in a URI, as they came but for blanks between them.
///
///     ;name=value;name="quoted";name
///
/// Names are compared without case. They are checked when they are read, and looked up where they stand.
/// Source: RFC 3261, section 25.1 (generic-param, uri-parameters)
package struct ParameterList: Hashable, Sendable, Sequence {
    /// From the first semicolon to the end.
    package private(set) var bytes: Bytes

    /// No parameters.
    package init() { bytes = [] }

    /// A branch, and the wish to be answered at the port that a request came from.
    init(branch: Bytes) {
        var written = Array(";branch=".utf8)
        written.reserveCapacity(written.count + branch.count + 6)
        written += branch
        written += ";rport".utf8
        bytes = written[...]
    }

    /// The parameters that `scanner` comes to; it then stands behind them.
    ///
    /// Throws: `badRequest` when a name is missing, a value is empty or not closed, or there are more than 32.
    init(parsing scanner: inout FieldScanner) throws(SIPError) {
        let all = scanner.rest
        var (end, count) = (scanner.index, 0)
        while scanner.takeSeparator(.semicolon) {
            count += 1
            guard count <= MessageLimits.parameterCount else {
                throw SIPError(
                    .badRequest,
                    "There are more than \(MessageLimits.parameterCount) parameters. Send fewer."
                )
            }
            guard Self.takeParameter(&scanner) != nil else {
                throw SIPError(.badRequest, "No parameter can be read in \"\(all.excerpt)\". Write ;name=value.")
            }
            end = scanner.index
        }
        bytes = all[..<end]
        guard bytes.contains(where: \.isBlank) else { return }
        var plain: [UInt8] = []
        for parameter in self { Self.serialize(parameter.name, parameter.value, into: &plain) }
        bytes = plain[...]
    }

    /// A parameter's name and value, nil when there is no equals sign, and with quotes if it came with them.
    package typealias Element = (name: Bytes, value: Bytes?)

    package struct Iterator: IteratorProtocol {
        fileprivate var scanner: FieldScanner

        package mutating func next() -> Element? {
            scanner.takeSeparator(.semicolon) ? ParameterList.takeParameter(&scanner) : nil
        }
    }

    package func makeIterator() -> Iterator { Iterator(scanner: FieldScanner(bytes)) }

    /// The value as it came; nil when there is no such parameter or it has no value.
    func rawValue(_ name: StaticString) -> Bytes? { first { $0.name.isNamed(name) }?.value }

    /// The value without quotes; nil when there is no such parameter or it has no value.
    package func value(_ name: StaticString) -> Bytes? { rawValue(name)?.unquoted }

    package func contains(_ name: StaticString) -> Bool { contains { $0.name.isNamed(name) } }

    /// Sets a parameter, in its place if it is there, else at the end; `value` is written as it is.
    mutating func set(_ name: StaticString, to value: Bytes?) {
        guard contains(name) else { return append(name, value) }
        var written: [UInt8] = []
        var isSet = false
        for parameter in self {
            let isThis = parameter.name.isNamed(name)
            if isThis, isSet { continue }
            isSet = isSet || isThis
            Self.serialize(parameter.name, isThis ? value : parameter.value, into: &written)
        }
        bytes = written[...]
    }

    private mutating func append(_ name: StaticString, _ value: Bytes?) {
        var written: [UInt8] = []
        written.reserveCapacity(bytes.count + name.utf8CodeUnitCount + (value?.count ?? 0) + 2)
        written += bytes
        written.append(.semicolon)
        name.withUTF8Buffer { written.append(contentsOf: $0) }
        if let value {
            written.append(.equals)
            written += value
        }
        bytes = written[...]
    }

    mutating func remove(_ name: StaticString) {
        guard contains(name) else { return }
        var written: [UInt8] = []
        for parameter in self where !parameter.name.isNamed(name) {
            Self.serialize(parameter.name, parameter.value, into: &written)
        }
        bytes = written[...]
    }

    /// The same in memory of its own, for what outlives its message.
    var detached: ParameterList {
        var list = self
        list.bytes = bytes.detached
        return list
    }

    /// Appends the parameters, without blanks between them.
    package func serialize(into bytes: inout [UInt8]) { bytes += self.bytes }

    private static func serialize(_ name: Bytes, _ value: Bytes?, into bytes: inout [UInt8]) {
        bytes.append(.semicolon)
        bytes += name
        guard let value else { return }
        bytes.append(.equals)
        bytes += value
    }

    /// A value may hold more than a token does: hosts with their brackets and colons, and what peers do not quote.
    private static func takeParameter(_ scanner: inout FieldScanner) -> Element? {
        guard let name = scanner.take(while: { $0.isParameter }) else { return nil }
        let end = scanner
        guard scanner.takeSeparator(.equals) else {
            scanner = end
            return (name, nil)
        }
        let value =
            scanner.next == .quote ? scanner.takeQuotedString() : scanner.take { $0.isParameter || $0 == .equals }
        return value.map { (name, $0) }
    }
}

extension UInt8 {
    fileprivate var isParameter: Bool {
        switch self {
        case .semicolon, .comma, .equals, .quote, .less, .greater, .questionMark, .at, 0x7F: false
        default: self > 0x20
        }
    }
}
