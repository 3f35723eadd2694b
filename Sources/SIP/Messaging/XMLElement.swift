internal import CallBasics

/// An element of an XML document, with all that is in it: what bodies of messages tell.
///
/// There are no types of documents and no entities but the five that XML has, so nothing is fetched and nothing grows. Only
/// UTF-8 is read, 64 KiB of it, 16 elements deep and 4096 in all, with 64 prefixes.
/// Source: XML 1.0; Namespaces in XML 1.0
package struct XMLElement: Hashable, Sendable {
    static let depth = 16
    static let count = 4096
    /// Prefixes that are known at once.
    static let prefixCount = 64

    /// What its prefix stands for; empty for none.
    package let namespace: String
    /// Without its prefix.
    package let name: String
    /// By name, those without a prefix.
    package let attributes: [String: String]
    package fileprivate(set) var children: [XMLElement] = []
    /// What stands directly in it, without blanks around it.
    package fileprivate(set) var text = ""

    /// Reads a document.
    ///
    /// Throws: `badRequest` when it is none, or one that is not taken; `messageTooLarge` beyond 64 KiB
    package init(parsing bytes: Bytes) throws(SIPError) {
        guard bytes.count <= MessageLimits.byteCount else { throw SIPMessage.tooLarge(bytes.count) }
        var reader = XMLReader(bytes)
        self = try reader.document()
    }

    fileprivate init(_ namespace: String, _ name: String, _ attributes: [String: String]) {
        (self.namespace, self.name, self.attributes) = (namespace, name, attributes)
    }

    /// The first child of a name in the same namespace; nil where there is none.
    package subscript(name: String) -> XMLElement? {
        children.first { $0.name == name && $0.namespace == namespace }
    }

    /// Text as it may stand in an element or an attribute.
    package static func escaped(_ text: String) -> String {
        var escaped = ""
        for character in text.unicodeScalars {
            switch character {
            case "&": escaped += "&amp;"
            case "<": escaped += "&lt;"
            case ">": escaped += "&gt;"
            case "\"": escaped += "&quot;"
            case "'": escaped += "&apos;"
            case "\t", "\n", "\r", " "...: escaped.unicodeScalars.append(character)
            // XML has no way to write it.
            default: escaped += "\u{FFFD}"
            }
        }
        return escaped
    }
}

private struct XMLReader {
    private var rest: Bytes
    private var left = XMLElement.count

    init(_ bytes: Bytes) {
        rest = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? bytes.dropFirst(3) : bytes
    }

    mutating func document() throws(SIPError) -> XMLElement {
        try skipMiscellany()
        guard take("<") else { throw Self.refused("has no element") }
        let root = try element(namespaces: ["": ""], depth: 1)
        try skipMiscellany()
        guard rest.isEmpty else { throw Self.refused("has something behind its element") }
        return root
    }

    private mutating func take(_ text: StaticString) -> Bool {
        let length = text.utf8CodeUnitCount
        guard rest.count >= length,
            rest.prefix(length).elementsEqual(UnsafeBufferPointer(start: text.utf8Start, count: length))
        else { return false }
        rest = rest.dropFirst(length)
        return true
    }

    private mutating func skipBlanks() { rest = rest.drop(while: Self.isBlank) }

    private static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || 0x09...0x0A ~= byte || byte == 0x0D }

    /// Takes what is in front of `end`, and that.
    private mutating func take(upTo end: StaticString) throws(SIPError) -> Bytes {
        let start = rest
        while !rest.isEmpty {
            let piece = start[..<rest.startIndex]
            if take(end) { return piece }
            rest = rest.dropFirst()
        }
        throw Self.refused("ends in the middle")
    }

    /// Takes a comment or an instruction; false when none is there.
    private mutating func skipAside() throws(SIPError) -> Bool {
        if take("<!--") {
            _ = try take(upTo: "-->")
        } else if take("<?") {
            _ = try take(upTo: "?>")
        } else {
            return false
        }
        return true
    }

    private mutating func skipMiscellany() throws(SIPError) {
        repeat { skipBlanks() } while try skipAside()
        guard !take("<!") else { throw Self.refused("names its type, which is not taken") }
    }

    // MARK: Elements

    private typealias Attribute = (prefix: String, name: String, value: String)

    /// Reads an element behind its `<`.
    private mutating func element(namespaces outer: [String: String], depth: Int) throws(SIPError) -> XMLElement {
        left -= 1
        guard depth <= XMLElement.depth, left >= 0 else {
            throw Self.refused(
                "has more than \(XMLElement.count) elements, or more than \(XMLElement.depth) in each other"
            )
        }
        let tag = try name()
        let (attributes, isEmpty) = try attributes()
        var namespaces = outer
        for attribute in attributes {
            if attribute.prefix == "xmlns" { namespaces[attribute.name] = attribute.value }
            if attribute.prefix.isEmpty, attribute.name == "xmlns" { namespaces[""] = attribute.value }
        }
        guard namespaces.count <= XMLElement.prefixCount else {
            throw Self.refused("names more than \(XMLElement.prefixCount) prefixes")
        }
        let (prefix, local) = Self.split(tag)
        guard let namespace = namespaces[prefix] else { throw Self.refused("has a prefix that nothing names") }
        var named: [String: String] = [:]
        for attribute in attributes where attribute.prefix.isEmpty && attribute.name != "xmlns" {
            guard named.updateValue(attribute.value, forKey: attribute.name) == nil else {
                throw Self.refused("has an attribute twice")
            }
        }
        var element = XMLElement(namespace, local, named)
        if !isEmpty { try readContent(of: &element, tag, namespaces, depth) }
        return element
    }

    private mutating func readContent(
        of element: inout XMLElement,
        _ tag: Bytes,
        _ namespaces: [String: String],
        _ depth: Int
    ) throws(SIPError) {
        var text: [UInt8] = []
        while true {
            guard let end = rest.firstIndex(of: 0x3C) else { throw Self.refused("ends in the middle") }
            try Self.unescape(rest[..<end], into: &text)
            rest = rest[end...]
            if take("</") {
                guard try name() == tag else { throw Self.refused("ends an element that is not open") }
                skipBlanks()
                guard take(">") else { throw Self.refused("has an end that is none") }
                element.text = text[...].trimmedText
                return
            }
            if take("<![CDATA[") {
                text += try take(upTo: "]]>")
            } else if try !skipAside() {
                guard !take("<!"), take("<") else { throw Self.refused("declares something, which is not taken") }
                element.children.append(try self.element(namespaces: namespaces, depth: depth + 1))
            }
        }
    }

    private mutating func attributes() throws(SIPError) -> (attributes: [Attribute], isEmpty: Bool) {
        var attributes: [Attribute] = []
        while true {
            skipBlanks()
            if take("/>") { return (attributes, true) }
            if take(">") { return (attributes, false) }
            let (prefix, local) = Self.split(try name())
            skipBlanks()
            guard take("=") else { throw Self.refused("has an attribute without a value") }
            skipBlanks()
            guard let quote = rest.first, quote == 0x22 || quote == 0x27,
                let end = rest.dropFirst().firstIndex(of: quote)
            else { throw Self.refused("has a value without quotes") }
            var value: [UInt8] = []
            try Self.unescape(rest[..<end].dropFirst(), into: &value)
            rest = rest[(end + 1)...]
            attributes.append((prefix, local, String(decoding: value, as: UTF8.self)))
        }
    }

    private mutating func name() throws(SIPError) -> Bytes {
        let end = rest.firstIndex { Self.isBlank($0) || "/>=<&'\"!?".utf8.contains($0) } ?? rest.endIndex
        let name = rest[..<end]
        guard !name.isEmpty else { throw Self.refused("has an element or an attribute without a name") }
        rest = rest[end...]
        return name
    }

    private static func split(_ name: Bytes) -> (prefix: String, local: String) {
        guard let colon = name.firstIndex(of: .colon) else { return ("", name.text) }
        return (name[..<colon].text, name[(colon + 1)...].text)
    }

    private static func unescape(_ bytes: Bytes, into text: inout [UInt8]) throws(SIPError) {
        var rest = bytes
        while let start = rest.firstIndex(of: 0x26) {
            text += rest[..<start]
            guard let end = rest[start...].prefix(10).firstIndex(of: .semicolon),
                let character = character(rest[(start + 1)..<end].text)
            else { throw refused("has an entity that is not taken") }
            text += String(character).utf8
            rest = rest[(end + 1)...]
        }
        text += rest
    }

    private static func character(_ entity: String) -> Unicode.Scalar? {
        switch entity {
        case "amp": "&"
        case "lt": "<"
        case "gt": ">"
        case "quot": "\""
        case "apos": "'"
        case _ where entity.hasPrefix("#x"): UInt32(entity.dropFirst(2), radix: 16).flatMap { Unicode.Scalar($0) }
        case _ where entity.hasPrefix("#"): UInt32(entity.dropFirst()).flatMap { Unicode.Scalar($0) }
        default: nil
        }
    }

    private static func refused(_ what: String) -> SIPError {
        SIPError(.badRequest, "The XML document \(what). Write it as XML 1.0 says, without a DOCTYPE.")
    }
}

extension Bytes {
    fileprivate var trimmedText: String {
        let isBlank: (UInt8) -> Bool = { $0 <= 0x20 }
        let start = drop(while: isBlank)
        return start.prefix((start.lastIndex { !isBlank($0) } ?? start.startIndex - 1) - start.startIndex + 1).text
    }
}
