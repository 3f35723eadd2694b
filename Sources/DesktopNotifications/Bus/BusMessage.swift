/// A value in a message of a bus, as far as notifications have any.
indirect enum BusValue: Hashable, Sendable {
    case byte(UInt8)
    case int32(Int32)
    case uint32(UInt32)
    case string(String)
    case strings([String])
    /// Variants by name.
    case dictionary([String: BusValue])
    /// A value of a type that notifications do not use; what it holds is not read.
    case other

    var string: String? { if case .string(let value) = self { value } else { nil } }
    var uint32: UInt32? { if case .uint32(let value) = self { value } else { nil } }
    var strings: [String]? { if case .strings(let values) = self { values } else { nil } }
}

/// A method to be called.
struct BusCall: Sendable {
    let destination: String
    let path: String
    let interface: String
    let member: String
    var body: [BusValue] = []

    /// A method of the bus itself.
    static func bus(_ member: String, _ body: [BusValue] = []) -> BusCall {
        BusCall(destination: busName, path: "/org/freedesktop/DBus", interface: busName, member: member, body: body)
    }

    static var busName: String { "org.freedesktop.DBus" }
}

/// A signal that arrived.
struct BusSignal: Hashable, Sendable {
    /// The unique name of who sent it, as the bus says; the bus's own name for its signals.
    let sender: String
    let interface: String
    let member: String
    let body: [BusValue]
}
