import Glibc

/// The parser that FUZZ_PARSER names.
private let parser = {
    let name = getenv("FUZZ_PARSER").map { String(cString: $0) } ?? ""
    guard let found = Parsers.all.first(where: { $0.name == name }) else {
        fputs("FUZZ_PARSER must be one of: \(Parsers.all.map(\.name).joined(separator: " "))\n", stderr)
        exit(64)
    }
    return found.run
}()

/// libFuzzer's door.
@_cdecl("LLVMFuzzerTestOneInput") public func testOneInput(_ data: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let bytes = UnsafeBufferPointer(start: data, count: data == nil ? 0 : count)
    do {
        try parser(Span(_unsafeElements: bytes))
    } catch {
        // Refused, which is what a parser is for.
    }
    return 0
}
