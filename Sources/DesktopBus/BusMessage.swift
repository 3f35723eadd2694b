/// A value in a message of a bus, as far as the services that are used here have any.
package indirect enum BusValue: Hashable, Sendable {
    case byte(UInt8)
    case bool(Bool)
    case int32(Int32)
    case uint32(UInt32)
    case string(String)
    /// The path of an object.
    case path(String)
    case bytes([UInt8])
    case strings([String])
    case paths([String])
    /// Texts by name.
    case texts([String: String])
    /// Variants by name.
    case dictionary([String: BusValue])
    case variant(BusValue)
    case structure([BusValue])
    /// A value of a type that nothing here uses; what it holds is not read.
    case other

    package var bool: Bool? { if case .bool(let value) = self { value } else { nil } }
    package var string: String? { if case .string(let value) = self { value } else { nil } }
    package var uint32: UInt32? { if case .uint32(let value) = self { value } else { nil } }
    package var path: String? { if case .path(let value) = self { value } else { nil } }
    package var bytes: [UInt8]? { if case .bytes(let value) = self { value } else { nil } }
    package var strings: [String]? { if case .strings(let values) = self { values } else { nil } }
    package var paths: [String]? { if case .paths(let values) = self { values } else { nil } }
    package var texts: [String: String]? { if case .texts(let values) = self { values } else { nil } }
    package var dictionary: [String: BusValue]? { if case .dictionary(let values) = self { values } else { nil } }
    package var variant: BusValue? { if case .variant(let value) = self { value } else { nil } }
    package var structure: [BusValue]? { if case .structure(let values) = self { values } else { nil } }
}

/// A method to be called.
package struct BusCall: Sendable {
    package let destination: String
    package let path: String
    package let interface: String
    package let member: String
    package let body: [BusValue]

    package init(destination: String, path: String, interface: String, member: String, body: [BusValue] = []) {
        (self.destination, self.path, self.interface) = (destination, path, interface)
        (self.member, self.body) = (member, body)
    }

    /// A method of the bus itself.
    package static func bus(_ member: String, _ body: [BusValue] = []) -> BusCall {
        BusCall(destination: busName, path: "/org/freedesktop/DBus", interface: busName, member: member, body: body)
    }

    package static var busName: String { "org.freedesktop.DBus" }
}

/// A signal that arrived.
package struct BusSignal: Hashable, Sendable {
    /// The unique name of who sent it, as the bus says; the bus's own name for its signals.
    package let sender: String
    package let path: String
    package let interface: String
    package let member: String
    package let body: [BusValue]
}
