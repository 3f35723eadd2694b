import Testing

@testable import SDP

@Suite struct TelephoneEventsTests {
    @Test(
        arguments: [
            (nil, "0-15"), ("0-15", "0-15"), ("0-15,66,70", "0-15,66,70"), ("events=0-16", "0-16"), ("0,1,2,3", "0-3"),
            (" 0 - 11 , 16 ", "0-11,16"), ("0-255", "0-255"), ("255", "255"), ("32,0-3,2-5", "0-5,32"),
            ("0-15;x=y", "0-15"),
            ("", "0-15"), ("x", "0-15"), ("15-0", "0-15"), ("0-256", "0-15"), ("-1", "0-15"), ("0--1", "0-15"),
            (",", "0-15"),
        ] as [(String?, String)]
    )
    func `a list is read, and what is none means the keys`(parameters: String?, expected: String) {
        #expect(TelephoneEvents(parameters: parameters).parameters == expected)
    }

    @Test(arguments: [
        ("0-15", "0-16", "0-15"), ("0-11,16", "12-20", "16"), ("0-3", "4-8", ""),
        ("63-64,127-128", "64,128-255", "64,128"),
    ])
    func `what both know is in both lists`(first: String, second: String, expected: String) {
        let both = TelephoneEvents(parameters: first).intersection(TelephoneEvents(parameters: second))
        #expect(both.parameters == expected && both.isEmpty == expected.isEmpty)
    }
}
