package import SIP

/// What is done for an element, but messages: names and connections.
package enum EndpointStep: Sendable {
    case asked(DNSQuestion)
    case answered(DNSAnswer, DNSQuestion)
    case opening(Flow)
    case opened(Flow)
    /// It could not be opened, or carries nothing any more, and why.
    case failed(Flow, String)
}
