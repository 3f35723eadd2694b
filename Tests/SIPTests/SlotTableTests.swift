import CallBasics
import Testing

@testable import SIP

@Suite struct SlotTableTests {
    private struct Entry: Sendable {
        var number: Int
        @Boxed var part: [Int]? = nil
    }

    private func numbers(_ table: SlotTable<BindingName, Entry>) -> [Int] {
        table.names.compactMap { table[$0]?.number }
    }

    @Test func `a copy of a table stays as it was, whatever becomes of the other`() throws {
        var table = SlotTable<BindingName, Entry>()
        let names = (0..<4).map { number in table.insert { _ in Entry(number: number) } }
        var copy = table
        table[names[0]]?.number = 10
        table.remove(names[1])
        let other = copy.insert { _ in Entry(number: 4) }
        copy[names[2]]?.number = 20
        #expect(numbers(table) == [10, 2, 3])
        #expect(numbers(copy) == [0, 1, 20, 3, 4])
        let again = table.insert { _ in Entry(number: 5) }
        #expect(again.slot == names[1].slot && table[names[1]] == nil && table[again]?.number == 5)
        #expect(copy[again] == nil && copy[names[1]]?.number == 1)
        #expect(copy.remove(other)?.number == 4 && copy.remove(other) == nil)
        #expect(table.count == 4 && copy.count == 4)
    }

    @Test func `a part in memory of its own is a value all the same`() {
        var one = Entry(number: 0, part: [1])
        let first = one
        one.part?.append(2)
        let second = one
        one.part = [3]
        one.part?.append(4)
        let third = one
        one.part = nil
        #expect(first.part == [1] && second.part == [1, 2] && third.part == [3, 4] && one.part == nil)
    }
}
