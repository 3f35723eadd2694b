/// An address at which media may be reached, found by ICE.
///
///     a=candidate:<foundation> <component> <transport> <priority> <address> <port> typ <type>
///                 [raddr <address>] [rport <port>] [<name> <value> ...]
///
/// Source: RFC 8839, section 5.1; RFC 6544, section 4.5 (tcptype).
package struct CandidateAttribute: Hashable, Sendable {
    package var foundation: String
    /// 1 for RTP, 2 for RTCP.
    package var component: UInt16
    /// In lower case: "udp", "tcp".
    package var transport: String
    package var priority: UInt32
    /// An address, or a name such as those that end with ".local".
    package var host: String
    package var port: UInt16
    /// "host", "srflx", "prflx", "relay", or another word.
    package var kind: String
    package var relatedHost: String?
    package var relatedPort: UInt16?
    /// What follows, name and value by turns.
    package var extensions: [SDPAttribute]

    init?(parsing value: Bytes) {
        var rest = value
        guard let foundation = rest.takeField(), let component: UInt16 = rest.takeField()?.decimal(),
            let transport = rest.takeField(), let priority: UInt32 = rest.takeField()?.decimal(),
            let host = rest.takeField(), let port: UInt16 = rest.takeField()?.decimal(),
            rest.takeField()?.isNamed("typ") ?? false, let kind = rest.takeField()
        else { return nil }
        self.foundation = foundation.text
        self.component = component
        self.transport = String(decoding: transport.map(\.lowercase), as: UTF8.self)
        self.priority = priority
        self.host = host.text
        self.port = port
        self.kind = kind.text
        extensions = []
        while let name = rest.takeField(), let value = rest.takeField() {
            if name.isNamed("raddr") {
                relatedHost = value.text
            } else if name.isNamed("rport") {
                relatedPort = value.decimal()
            } else {
                extensions.append(SDPAttribute(name.text, value.text))
            }
        }
    }
}
