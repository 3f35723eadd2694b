import CallBasics

/// Who may ask a server of pages.
///
/// A browser reaches a server on its own machine for pages from anywhere: one that is not of this server is refused by its
/// Origin, and by the name that it calls this server by, which may stand for any address (DNS rebinding).
struct PageGate: Sendable {
    /// Another address of the page, as scheme, name and port; nil for none.
    var origin: String?

    /// What is answered to a request that is none of ours; nil for one that is.
    func refusal(of request: PageRequest) -> PageResponse? {
        let host = request.host ?? ""
        guard isOurs(host) else {
            return PageResponse(421, "This server is called by its address, or the name of --origin.")
        }
        // A page that calls at once may not be opened by others.
        if origin == nil, let site = request.site, site != "none", site != "same-origin" {
            return PageResponse(403, "Another page leads here. Type the address yourself.")
        }
        // Programs that are no browsers name no page.
        guard let page = request.origin, page != "http://\(host)", page != origin else { return nil }
        return PageResponse(403, "A page from elsewhere may not call. Name its address by --origin.")
    }

    /// Whether who asks for `host` meant this server: by a number, which no name of somebody else can stand for.
    private func isOurs(_ host: String) -> Bool {
        if let origin, Self.host(of: origin) == host { return true }
        let colon = host.lastIndex(of: ":").flatMap { UInt16(host[host.index(after: $0)...]) == nil ? nil : $0 }
        let name = host[..<(colon ?? host.endIndex)].filter { $0 != "[" && $0 != "]" }
        return name == "localhost" || SocketAddress(host: name, port: 0) != nil
    }

    /// The host of an origin, with its port where it has one; nil for what is no origin.
    static func host(of origin: String) -> String? {
        for scheme in ["http://", "https://"] where origin.hasPrefix(scheme) {
            let host = origin.dropFirst(scheme.count)
            return host.isEmpty || host.contains("/") ? nil : String(host)
        }
        return nil
    }
}
