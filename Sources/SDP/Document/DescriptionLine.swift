internal import CallBasics

/// One line of a session description: a type of one character, and a value.
///
///     <type>=<value> CR LF
///
/// Source: RFC 8866, section 5.
struct DescriptionLine: Hashable, Sendable {
    /// The character before the equals sign.
    let type: UInt8
    /// What follows it, as it came.
    let value: Bytes

    /// A line that was read, or nil when `line` has no type and no equals sign.
    ///
    /// Blanks before the type and before the equals sign are left out.
    init?(parsing line: Bytes) {
        var rest = line.withoutLeadingBlanks
        guard let type = rest.popFirst(), type.isVisible, type != UInt8(ascii: "=") else { return nil }
        rest = rest.withoutLeadingBlanks
        guard rest.popFirst() == UInt8(ascii: "=") else { return nil }
        self.type = type
        value = rest
    }

    /// A line to be written.
    ///
    /// Throws: `invalidCharacter` for a control character, which could begin a line of its own.
    init(_ type: Unicode.Scalar, _ text: String) throws(SDPError) {
        self.type = UInt8(truncatingIfNeeded: type.value)
        value = Bytes(text)
        if let control = value.first(where: { $0 < 0x20 || $0 == 0x7F }) {
            throw SDPError(
                .invalidCharacter,
                "\"\(type)=\(text.excerpt)\" holds the control character \(control), which no "
                    + "line may have. Take it out."
            )
        }
    }

    /// The line's bytes with its end.
    var byteCount: Int { value.count + 4 }

    func serialize(into bytes: inout [UInt8]) {
        bytes.append(type)
        bytes.append(UInt8(ascii: "="))
        bytes.append(contentsOf: value)
        bytes.append(0x0D)
        bytes.append(0x0A)
    }

    /// The name of an attribute; nil for lines of other types.
    var attributeName: Bytes? {
        guard type == UInt8(ascii: "a") else { return nil }
        return value[..<(value.firstIndex(of: UInt8(ascii: ":")) ?? value.endIndex)]
    }

    /// What follows the name of an attribute and its colon; nil for those without and for lines of other types.
    var attributeValue: Bytes? {
        guard let name = attributeName, name.endIndex < value.endIndex else { return nil }
        return value[(name.endIndex + 1)...].withoutLeadingBlanks
    }

    /// The value of the attribute `name`, without blanks at the front; nil for others and for those without value.
    func value(ofAttribute name: StaticString) -> Bytes? {
        attributeName?.isNamed(name) ?? false ? attributeValue : nil
    }

    /// The attribute that the line is; nil for lines of other types.
    var attribute: SDPAttribute? {
        attributeName.map { SDPAttribute($0.text, attributeValue?.text) }
    }
}

/// An attribute of a description: `a=name` or `a=name:value`.
///
/// Source: RFC 8866, section 5.13.
public struct SDPAttribute: Hashable, Sendable {
    /// The name, such as "label".
    public var name: String
    /// What follows the colon; nil when there is no colon.
    public var value: String?

    /// An attribute with `name` and `value`.
    public init(_ name: String, _ value: String? = nil) {
        self.name = name
        self.value = value
    }

    /// The text after "a=".
    var text: String { value.map { "\(name):\($0)" } ?? name }
}
