import Testing

@testable import DesktopNotifications

/// What of a call is shown, when the desktop answers late.
@Suite struct CallTableTests {
    private let table = CallTable()
    private let first = CallTable.Place(number: 1, owner: "a")
    private let second = CallTable.Place(number: 2, owner: "a")

    @Test func `what is shown in the place of something else has its number`() {
        #expect(table.note(first, of: "c", table.begin("c")) && table.place(of: "c") == first)
        let turn = table.begin("c")
        #expect(table.call(of: first) == "c" && table.note(first, of: "c", turn))
        #expect(table.remove("c") == first && table.remove("c") == nil && table.call(of: first) == nil)
    }

    @Test func `of two that were asked for before either was shown the first is closed`() {
        let (early, late) = (table.begin("c"), table.begin("c"))
        #expect(!table.note(first, of: "c", early) && table.note(second, of: "c", late))
        #expect(table.call(of: second) == "c")
    }

    @Test func `an early answer that comes late leaves what is shown in its place`() {
        #expect(table.note(first, of: "c", table.begin("c")))
        let (early, late) = (table.begin("c"), table.begin("c"))
        #expect(table.note(first, of: "c", late) && table.note(first, of: "c", early))
    }

    @Test func `what is not shown is forgotten, unless something of the call is`() {
        table.forget("c", table.begin("c"))
        let turn = table.begin("d")
        #expect(!table.note(first, of: "c", turn) && table.note(second, of: "d", turn))
        table.forget("d", table.begin("d"))
        #expect(table.place(of: "d") == second)
    }
}
